"""Tests that the solution of the exercise decides the payments in the bank's list and no others."""

import runpy
from pathlib import Path
from typing import Any

decisions: Any = runpy.run_path(str(Path(__file__).with_name("decide_by_list.py")))["decisions"]


def pending(*keys: str) -> list[dict[str, object]]:
    return [{"keys": [key], "transactionId": f"T-{key}"} for key in keys]


def test_what_the_bank_booked_is_committed_and_what_it_did_not_book_is_rolled_back() -> None:
    bank = {"payment-1": "booked", "payment-2": "not booked"}
    assert list(decisions(pending("payment-1", "payment-2"), bank)) == [
        ("T-payment-1", "payment-1", "--commit"),
        ("T-payment-2", "payment-2", "--rollback"),
    ]


def test_what_the_bank_does_not_know_or_does_not_say_clearly_stays_pending() -> None:
    assert list(decisions(pending("payment-1", "payment-2"), {"payment-2": "in clearing"})) == []
