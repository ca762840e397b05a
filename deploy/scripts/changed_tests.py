"""Prints the unit tests of changed files: `python -m deploy.scripts.changed_tests [REVISION]`.

`make check CHANGED=1` runs these tests.
"""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
UNIT = PurePosixPath("tests/unit")
ALWAYS = (UNIT / "test_architecture.py", UNIT / "test_one_world.py")
DISTRIBUTIONS = ("broker/rocketmq_broker", "deploy", "lab")
"""The folders whose names are omitted from the paths of their unit tests: tests for lab/x are in tests/unit/x."""
PACKAGES = PurePosixPath("packages")
"""The parent folder of the packages that contain their own `tests` folder."""


def changed_files(revision: str) -> list[str]:
    """Returns the paths of files that differ from `revision`, and of untracked files that git does not ignore.

    Raises SystemExit with git's error if the revision does not exist.
    """
    paths: list[str] = []
    for command in (["diff", "--name-only", revision, "--"], ["ls-files", "--others", "--exclude-standard"]):
        done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"check: {done.stderr.strip()}")
        paths += done.stdout.splitlines()
    return paths


def unit_tests_for(paths: Iterable[str]) -> list[str]:
    """Returns the test files and test folders that belong to these paths, and the tests in ALWAYS.

    A module belongs to its top-level package. For example, a change in store/log selects all tests of store.
    """
    found = {*ALWAYS}
    for path in map(PurePosixPath, paths):
        if path.is_relative_to(UNIT):
            found.add(path if path.name.startswith("test_") else path.parent)
        elif path.suffix == ".md":
            found |= {UNIT / name.name for name in (ROOT / UNIT).glob("test_*.py")}
        else:
            found.add(_mirror(path))
    there = {path for path in found if path != UNIT and (ROOT / path).exists()}
    return sorted(str(path) for path in there if there.isdisjoint(path.parents))


def _mirror(path: PurePosixPath) -> PurePosixPath:
    if path.is_relative_to(PACKAGES):
        return PACKAGES / path.parts[1] / "tests"
    for distribution in DISTRIBUTIONS:
        if path.is_relative_to(distribution):
            path = path.relative_to(distribution)
    return UNIT / path.parts[0]


if __name__ == "__main__":
    revision = sys.argv[1] if sys.argv[1:] and sys.argv[1] != "1" else "HEAD"
    print(*unit_tests_for(changed_files(revision)))
