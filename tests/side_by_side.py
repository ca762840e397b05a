"""Which tests one process of pytest-xdist runs one after the other: those of a file, and all chapters of the tutorials."""

from typing import Any, Final

import pytest

CHAPTERS: Final = "tutorials"


def scope_of(nodeid: str) -> str:
    """The name of what a test belongs to.

    The chapters share ports and a folder, so only one runs at a time: with two processes on them one would always wait.
    """
    path = nodeid.partition("::")[0]
    return CHAPTERS if path.startswith(f"{CHAPTERS}/") and path.endswith("/README.md") else path


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Distributes by file as `--dist loadfile` does, but for the chapters."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class _Scheduling(LoadFileScheduling):  # type: ignore[misc, no-any-unimported, unused-ignore]
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

    return _Scheduling(config, log)
