"""Each block of docs/testing.md is a test file that passes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[3]
PAGE = CHECKOUT / "docs" / "testing.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)

pytest_plugins = ["pytester"]


@pytest.mark.parametrize("block", BLOCKS, ids=range(1, len(BLOCKS) + 1))
def test_each_block_is_a_test_that_passes(block: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    pytester.makepyfile(block)
    pytester.makeini("[pytest]\nasyncio_mode = auto")
    pytester.runpytest_subprocess("-p", "rocketmq_broker.testing.plugin").assert_outcomes(passed=1)


def test_the_page_has_blocks() -> None:
    assert len(BLOCKS) >= 4
