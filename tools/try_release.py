"""Try what is about to be released: `make release` runs this in an environment that has the wheel and nothing else.

    python tools/try_release.py ROOT DIST [--trial]

ROOT is the repository, to compare with; DIST the folder with the wheel and the source distribution. A trial accepts a
changelog without the day of the release, as between releases.
"""

from __future__ import annotations

import re
import sys
import tarfile
import zipfile
from pathlib import Path


def main(root: Path, dist: Path, trial: bool = False) -> None:
    import rankhinge

    installed = Path(rankhinge.__file__).resolve()
    if installed.is_relative_to(root.resolve() / "src"):
        sys.exit(f"{installed} is the source, not the wheel")
    version = rankhinge.__version__
    check_citation(root, version)
    check_wheel(dist / f"rankhinge-{version}-py3-none-any.whl")
    check_source(dist / f"rankhinge-{version}.tar.gz")
    try_it()
    if trial:
        print(f"rankhinge {version} can be built and installed. The day in the changelog was not looked at.")
        return
    check_changelog(root, version)
    print(f"rankhinge {version} can be released.")


def check_citation(root: Path, version: str) -> None:
    """The citation has the same version."""
    cited = re.search(r"^version: (.+)$", (root / "CITATION.cff").read_text("utf-8"), flags=re.MULTILINE)
    if cited is None or cited[1] != version:
        sys.exit(f"CITATION.cff has another version than {version}")


def check_changelog(root: Path, version: str) -> None:
    """The changelog has a section of this version, with its day."""
    heading = rf"^## {re.escape(version)} \(\d{{4}}-\d{{2}}-\d{{2}}\)$"
    if not re.search(heading, (root / "CHANGELOG.md").read_text("utf-8"), flags=re.MULTILINE):
        sys.exit(f"not to be released yet: CHANGELOG.md has no heading '## {version} (YYYY-MM-DD)'")


def check_wheel(path: Path) -> None:
    """The package and its metadata, and neither tests nor data nor compiled files."""
    names = zipfile.ZipFile(path).namelist()
    strange = [name for name in names if not re.match(r"rankhinge(-[^/]+\.dist-info)?/", name)]
    strange += [name for name in names if re.search(r"__pycache__|\.py[co]$|\.nb[ci]$|/tests?/|\.npy$|\.png$", name)]
    if strange:
        sys.exit(f"{path.name} holds {strange[:5]}")
    if "rankhinge/py.typed" not in names:
        sys.exit(f"{path.name} lacks py.typed")


def check_source(path: Path) -> None:
    """A source distribution is the repository: tests, pages and examples come along."""
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = ["Makefile", "CHANGELOG.md", "constraints.txt", "tests/test_rooms.py", "docs/architecture.md"]
    missing = [name for name in wanted if name not in names]
    if missing:
        sys.exit(f"{path.name} lacks {missing}")


def try_it() -> None:
    """A first fit, as a newcomer would do it."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    from rankhinge import RankSVC

    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y == 8, test_size=0.5, random_state=0)
    model = RankSVC().fit(X, y)
    quality = model.score(X_test, y_test)
    print(f"RankSVC(): average precision {quality:.3f} on digit 8, {model.status_}, gap {model.gap_:.1e}")
    if not 0.6 < quality < 1:
        sys.exit("that is not what the tests see")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), trial="--trial" in sys.argv[3:])
