"""Tests that a judged run tells how far it is, and ends at once when one of its parts fails."""

from concurrent.futures import Future

import pytest

from lab.judged import run
from lab.judged.run import play_for


def test_a_run_lasts_as_long_as_it_should_and_tells_about_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_TOLD_EVERY_S", 0.01)
    told = []
    play_for(0.05, [Future()], lambda: told.append(1))
    assert told


def test_a_part_that_fails_ends_the_run() -> None:
    failed: Future[None] = Future()
    failed.set_exception(RuntimeError("no broker"))
    with pytest.raises(RuntimeError, match="no broker"):
        play_for(3600, [Future(), failed], lambda: None)
