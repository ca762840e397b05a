"""Makes the chapters' code blocks tests, if Sybil is installed. An environment for one recipe alone does not have it."""

from importlib.util import find_spec

if find_spec("sybil"):
    from tutorials.chapters import pytest_collect_file, pytest_collection_modifyitems

    __all__ = ["pytest_collect_file", "pytest_collection_modifyitems"]
