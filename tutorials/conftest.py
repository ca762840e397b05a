"""Makes every block of every chapter a test: ```bash blocks run, and a ```text block is what the one before it prints."""

import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from sybil import Sybil
from sybil.parsers.markdown import CodeBlockParser

from tests.fixed_ports import the_fixed_ports
from tutorials.shell import Shell, compare_output, run_block

CHECKOUT: Final = Path(__file__).parent.parent
LONGEST_S: Final = 1200
"""How long a block may take: a chapter's first one waits while the compose demo has the ports."""


def start_shell(namespace: dict[str, Any]) -> None:
    """Before a chapter's first block: a shell in the checkout as a fresh clone has it, without the folder data/tutorial.

    All chapters share that folder, which each makes for itself, and some of them ports: one runs at a time.
    """
    namespace["held"] = ExitStack()
    namespace["held"].enter_context(the_fixed_ports())
    shutil.rmtree(CHECKOUT / "data" / "tutorial", ignore_errors=True)
    namespace["shell"] = Shell(CHECKOUT)


def end_shell(namespace: dict[str, Any]) -> None:
    """After its last block."""
    namespace["shell"].close()
    namespace["held"].close()


pytest_collect_file = Sybil(
    parsers=[CodeBlockParser("bash", run_block), CodeBlockParser("text", compare_output)],
    patterns=["*/README.md"],
    setup=start_shell,
    teardown=end_shell,
).pytest()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The blocks of chapters have more time than other tests."""
    for item in items:
        if item.path.name == "README.md":
            item.add_marker(pytest.mark.timeout(LONGEST_S))
