"""Tests the garbage collector's settings while a broker starts."""

import gc

import pytest

from rocketmq_broker.__main__ import collector_paused


def test_the_collector_passes_over_what_a_start_builds_and_works_afterwards() -> None:
    frozen_before = gc.get_freeze_count()
    try:
        with collector_paused():
            assert not gc.isenabled()
            built = [[number] for number in range(1000)]
        assert gc.isenabled()
        assert gc.get_freeze_count() - frozen_before >= len(built)
    finally:
        gc.unfreeze()


def test_the_collector_works_after_a_start_that_failed() -> None:
    try:
        with pytest.raises(OSError, match="no such store"), collector_paused():
            raise OSError("no such store")
        assert gc.isenabled()
    finally:
        gc.unfreeze()
