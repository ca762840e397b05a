"""Turns the chapters' blocks into tests: ```bash blocks run, and a ```text block is the expected output of the block before."""

import os
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from sybil import Sybil
from sybil.parsers.markdown import CodeBlockParser
from sybil.sybil import SybilCollection

from service_runtime.starting.start import exempt_loopback_from_proxies
from tests.one_at_a_time import one_at_a_time
from tests.side_by_side import needs_the_place
from tutorials.shell import Shell, compare_output, run_block

exempt_loopback_from_proxies(os.environ)  # chapters use curl on loopback addresses

CHECKOUT: Final = Path(__file__).parent.parent
MAX_S: Final = 1200
"""The time limit of a block. A chapter's first block may have to wait for the ports of the compose demo."""


def start_shell(namespace: dict[str, Any]) -> None:
    """Starts a shell in the checkout before a chapter's first block."""
    namespace["held"] = ExitStack()
    namespace["shell"] = Shell(CHECKOUT)


def start_shell_alone(namespace: dict[str, Any]) -> None:
    """Prepares a chapter that shares ports or the folder data/tutorial, which a fresh clone lacks."""
    start_shell(namespace)
    namespace["held"].enter_context(one_at_a_time("tutorials"))
    shutil.rmtree(CHECKOUT / "data" / "tutorial", ignore_errors=True)


def end_shell(namespace: dict[str, Any]) -> None:
    """Closes the shell after the last block."""
    namespace["shell"].close()
    namespace["held"].close()


def chapters(*, sharing: bool) -> Sybil:
    """Returns the tests of the chapters that share ports and folders, or of those that do not."""
    found = (path for path in CHECKOUT.glob("tutorials/*/README.md") if needs_the_place(path) is sharing)
    return Sybil(
        parsers=[CodeBlockParser("bash", run_block), CodeBlockParser("text", compare_output)],
        patterns=[f"{path.parent.name}/README.md" for path in found],
        setup=start_shell_alone if sharing else start_shell,
        teardown=end_shell,
    )


pytest_collect_file = SybilCollection((chapters(sharing=True), chapters(sharing=False))).pytest()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Extends the time limit of the chapters' blocks, and marks the blocks that need fixed ports."""
    for item in items:
        if item.path.name == "README.md":
            item.add_marker(pytest.mark.timeout(MAX_S))
            if needs_the_place(item.path):
                item.add_marker("ports")
