"""Tests of `python -m credit_service inbox`, which lists, retries and dismisses parked messages."""

import sys

import pytest
from sqlalchemy import Engine

from credit_service.adapters.ledger import Ledger
from credit_service.entrypoints.process import SERVICE
from tests.component.credit_service.conftest import an_order, points
from tests.component.credit_service.test_crediting import accept, drain, refuse


def inbox(monkeypatch: pytest.MonkeyPatch, url: str, *arguments: str) -> int:
    """Runs the command, and returns its exit status."""
    monkeypatch.setenv("CREDIT_DATABASE_URL", url)
    monkeypatch.setattr(sys, "argv", ["credit_service", "inbox", *arguments])
    try:
        return SERVICE.main()
    except SystemExit as ended:
        return int(ended.code or 0)


@pytest.fixture
def parked(ledger: Ledger, engine: Engine) -> list[str]:
    """Parks two messages, and returns their keys."""
    refuse(engine, 666)
    ledger.store([an_order(f"bad-{number}", number, amount_cents=666) for number in range(2)])
    while ledger.inbox.state().waiting:
        drain(ledger, max_tries=0)
    return sorted(message.key for message in ledger.inbox.parked())


def test_parked_messages_are_listed_with_their_keys_and_reasons(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], database_url: str, parked: list[str]
) -> None:
    assert inbox(monkeypatch, database_url, "list") == 0
    lines = sorted(capsys.readouterr().out.splitlines())
    assert [line.split("  ")[0] for line in lines] == parked
    assert all("since 20" in line and "no" in line.rpartition(": ")[2] for line in lines)


def test_all_parked_messages_or_those_named_are_tried_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ledger: Ledger, engine: Engine,
    database_url: str, parked: list[str],
) -> None:  # fmt: skip
    accept(engine)
    assert inbox(monkeypatch, database_url, "retry", parked[0], "another") == 0
    assert inbox(monkeypatch, database_url, "retry") == 0
    assert capsys.readouterr().out == "1 messages are tried again\n" * 2
    drain(ledger)
    assert points(ledger) == 12


def test_dismissed_messages_stay_in_the_table_and_are_neither_listed_nor_tried_nor_stored_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ledger: Ledger, engine: Engine,
    database_url: str, parked: list[str],
) -> None:  # fmt: skip
    accept(engine)
    assert inbox(monkeypatch, database_url, "dismiss", *parked) == 0
    assert inbox(monkeypatch, database_url, "retry") == 0
    assert inbox(monkeypatch, database_url, "list") == 0
    assert capsys.readouterr().out == "2 messages are dismissed\n0 messages are tried again\nno message is parked\n"
    ledger.store([an_order(f"bad-{number}", number, amount_cents=666) for number in range(2)])
    assert (drain(ledger).handled, points(ledger)) == (0, 0)
