"""Python source that hides modules from the program below it, as if their packages were not installed."""

from collections.abc import Collection


def without_modules(roots: Collection[str]) -> str:
    """Returns source to put before a program. Modules below these roots, and the roots, are then not found."""
    return f"""
import sys
from importlib.machinery import PathFinder

class Installed(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in {set(roots)!r} else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Installed
"""
