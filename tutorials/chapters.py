"""Turns the code blocks of the chapters into tests, for `conftest.py`.

A ```bash block is executed. A ```text block is the expected output of the block before it.
"""

import logging
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

exempt_loopback_from_proxies(os.environ)  # the chapters use curl with loopback addresses

# Apache's client 5 exports metrics until its process ends, to brokers that have ended, too.
logging.getLogger("opentelemetry.exporter.otlp.proto.grpc").setLevel(logging.CRITICAL)

CHECKOUT: Final = Path(__file__).parent.parent
MAX_S: Final = 1200
"""The time limit of a block in seconds. The first block of a chapter may wait until the ports of the compose demo are free."""


def start_shell(namespace: dict[str, Any]) -> None:
    """Starts a shell in the root folder of the checkout, before the first block of a chapter."""
    namespace["held"] = ExitStack()
    namespace["shell"] = Shell(CHECKOUT)


def start_shell_alone(namespace: dict[str, Any]) -> None:
    """Starts a shell for a chapter that uses shared ports or the folder data/tutorial.

    Waits until no other such chapter runs, and deletes data/tutorial, as in a fresh clone.
    """
    start_shell(namespace)
    namespace["held"].enter_context(one_at_a_time("tutorials"))
    shutil.rmtree(CHECKOUT / "data" / "tutorial", ignore_errors=True)


def end_shell(namespace: dict[str, Any]) -> None:
    """Closes the shell after the last block of a chapter."""
    namespace["shell"].close()
    namespace["held"].close()


def chapters(*, sharing: bool) -> Sybil:
    """Returns the tests of chapters that use shared ports and folders, or of the other chapters if `sharing` is False."""
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
    """Sets the time limit of the chapters' blocks, and marks the blocks that need fixed ports."""
    for item in items:
        if item.path.name == "README.md":
            item.add_marker(pytest.mark.timeout(MAX_S))
            if needs_the_place(item.path):
                item.add_marker("ports")
