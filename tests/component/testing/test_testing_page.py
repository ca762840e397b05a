"""Tests that each block of docs/testing.md is a test file that passes."""

from pathlib import Path

import pytest

from tests.testing_page import BLOCKS

CHECKOUT = Path(__file__).parents[3]

pytest_plugins = ["pytester"]


def test_each_block_is_a_test_that_passes(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block passes. Explorations use fewer seeds than on the page."""
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    for number, block in enumerate(BLOCKS, 1):
        pytester.makepyfile(**{f"test_block_{number}": block.replace("@explore(seeds=100)", "@explore(seeds=10)")})
    pytester.makeini("[pytest]\nasyncio_mode = auto")
    pytester.runpytest_subprocess("-p", "rocketmq_broker.testing.plugin").assert_outcomes(passed=len(BLOCKS))


def test_the_page_has_blocks() -> None:
    assert len(BLOCKS) >= 4
