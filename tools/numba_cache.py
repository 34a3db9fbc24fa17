"""Print the folder for numba's disk cache that belongs to the source as it stands.

numba notices an edit of the file a kernel is in, but not of another file whose functions or
constants the kernel has taken in: it then runs the old machine code without a warning. A folder
named after the content of all files can never serve an old kernel to new source.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHES = ROOT / ".make" / "numba-cache"
# A run that began before the latest edit may still write to its own folder.
KEEP_SECONDS = 6 * 3600


def folder_of_source(package: Path = ROOT / "src" / "rankhinge", caches: Path = CACHES) -> Path:
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(package).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return caches / digest.hexdigest()[:16]


def prepare(folder: Path) -> None:
    """Make the folder, mark it as used now, and remove those unused for long."""
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    for other in folder.parent.iterdir():
        if time.time() - other.stat().st_mtime > KEEP_SECONDS:
            shutil.rmtree(other, ignore_errors=True)


if __name__ == "__main__":
    folder = folder_of_source()
    prepare(folder)
    print(folder)
