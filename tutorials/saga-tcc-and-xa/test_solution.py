"""Tests the exercise's solution, and a saga in which a step fails."""

from pathlib import Path
from subprocess import CalledProcessError

import pytest

from tutorials.halfway import saga, tcc
from tutorials.halfway.services import call, log, state_of


def test_a_try_that_comes_after_the_cancel_fails(tmp_path: Path) -> None:
    log(tmp_path, "order-1", "TRYING")  # killed before the first try arrives
    tcc.recover(tmp_path)
    with pytest.raises(CalledProcessError):
        call(tmp_path, "credits", (tcc.TRY.format(service="credits"), ["order-1"]))
    assert state_of(tmp_path, "credits", "order-1") == "CANCELLED"


def test_a_saga_whose_credit_is_refused_cancels_its_order(tmp_path: Path) -> None:
    call(tmp_path, "credits", ("CREATE TRIGGER full BEFORE INSERT ON credits BEGIN SELECT RAISE(ABORT, 'refused'); END", []))
    saga.place(tmp_path, "order-1")
    assert [state_of(tmp_path, service, "order-1") for service in ("orders", "credits")] == ["CANCELLED", "-"]
