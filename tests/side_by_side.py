"""Distributes tests to processes of pytest-xdist. Tests of one file or with one shared resource run in the same process.

Every second process begins with tests that compute, and the others begin with tests that wait.
"""

import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

ONE_PLACE: Final = "the fixed ports and the folder data"
ONE_SPARK: Final = "the session of Spark"
WHOLE_TREE: Final = "what the whole tree says"
LONGEST: Final = ("tests/lab/simulation/test_worlds.py", "tests/foreign/clients/test_java_client.py")
"""The files that take minutes and begin first, since a process that begins one last ends long after the others."""
_CHECKOUT: Final = Path(__file__).parents[1]
_WHOLE_TREE: Final = "tests/unit/test_"
_ON_SPARK: Final = "tests/foreign/spark/session/"
_COMPUTES: Final = re.compile(r"tests/(component|unit|lab|foreign/(cluster|package|postgresql|pythons|spark|windows))/")
_BLOCKS: Final = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)
_NAMES_THE_PLACE: Final = re.compile(r"\b808\d\b|\bdata/")


def scope_of(nodeid: str) -> str:
    """Returns the name of the group to which a test belongs.

    Tests that share fixed ports or a folder run one at a time: two processes would wait for each other. Tests that read the whole
    tree parse it once, in one process. Tests on Spark share its session, which each process would otherwise have to start.
    """
    path = nodeid.partition("::")[0]
    if needs_the_place(_CHECKOUT / path):
        return ONE_PLACE
    if path.startswith(_WHOLE_TREE):
        return WHOLE_TREE
    return ONE_SPARK if path.startswith(_ON_SPARK) else path


def computes(scope: str) -> bool:
    """Returns whether the scope's tests keep a processor busy. Tests of real processes and of Apache's brokers mostly wait."""
    return scope in (WHOLE_TREE, ONE_SPARK) or _COMPUTES.match(scope) is not None


def next_scope(scopes: Sequence[str], *, computing: bool) -> str:
    """Returns one of `LONGEST`, else the first scope of the wanted kind, or of the other kind if none is left.

    Running many computing tests at the same time starves Apache's brokers; running many waiting tests leaves processors idle.
    Four processes on two processors were too many: Apache's brokers and clients give up after 3 s.
    """
    longest = (scope for scope in scopes if scope in LONGEST)
    return next(longest, None) or next((scope for scope in scopes if computes(scope) is computing), scopes[0])


@functools.cache
def needs_the_place(path: Path) -> bool:
    """Returns whether the file is a tutorial chapter with a block that names a fixed port or the chapters' shared folder."""
    is_chapter = path.name == "README.md" and path.parts[-3] == "tutorials"
    return is_chapter and any(_NAMES_THE_PLACE.search(block) for block in _BLOCKS.findall(path.read_text()))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Distributes by file like `--dist loadfile`, except that tests with a shared resource stay together. See the module."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class _Scheduling(LoadFileScheduling):  # type: ignore[misc, no-any-unimported, unused-ignore]
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

        def _assign_work_unit(self, node: Any) -> None:
            scope = next_scope(list(self.workqueue), computing=self.nodes.index(node) % 2 == 1)
            self.workqueue.move_to_end(scope, last=False)
            super()._assign_work_unit(node)

    return _Scheduling(config, log)
