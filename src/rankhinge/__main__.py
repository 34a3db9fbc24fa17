"""``python -m rankhinge`` is the command ``rankhinge``."""

import sys

from rankhinge.cli import main

if __name__ == "__main__":
    sys.exit(main())
