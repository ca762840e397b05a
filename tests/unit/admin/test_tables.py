import json

import pytest

from rocketmq_broker.admin.output import tables
from rocketmq_broker.admin.output.printing import print_json
from rocketmq_broker.protocol.bodies.transaction_admin import TransactionInfo


def info(**fields: object) -> TransactionInfo:
    return TransactionInfo("pending", 17, **{"check_max": 15, "checks": 2, "next_check_in_ms": 30_000, **fields})  # type: ignore[arg-type]


def test_one_broker_needs_no_column_and_several_do(capsys: pytest.CaptureFixture[str]) -> None:
    tables.print_pending([("10.0.0.1:10911", info())])
    assert "10.0.0.1" not in capsys.readouterr().out

    tables.print_pending([("10.0.0.1:10911", info()), ("10.0.0.2:10911", info())])
    assert "10.0.0.2" in capsys.readouterr().out


def test_after_the_last_check_the_table_says_when_the_message_is_discarded(capsys: pytest.CaptureFixture[str]) -> None:
    tables.print_pending([("a", info(checks=15))])

    assert "discarded in 30 s" in capsys.readouterr().out


def test_while_an_answer_is_owed_the_table_says_for_how_long(capsys: pytest.CaptureFixture[str]) -> None:
    tables.print_pending([("a", info(checks=15, answer_owed_ms=12_000))])

    said = capsys.readouterr().out
    assert "waiting for an answer for 12 s" in said
    assert "discarded in" not in said


def test_nothing_that_a_producer_wrote_reaches_the_terminal_as_a_control_sequence(capsys: pytest.CaptureFixture[str]) -> None:
    tables.print_pending([("a", info(keys=["\x1b[2Jgone"], producer_group="[red]group[/red]"))])

    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "[red]group[/red]" in said


def test_lines_are_not_cut_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    transaction_id = "C" * 32
    tables.print_pending([("a", info(transaction_id=transaction_id, keys=["k" * 40], topic="t" * 30, producer_group="g" * 30))])

    (_, row) = capsys.readouterr().out.splitlines()
    assert transaction_id in row


def test_json_rows_name_their_broker(capsys: pytest.CaptureFixture[str]) -> None:
    print_json([("127.0.0.1:10911", info())])

    (row,) = json.loads(capsys.readouterr().out)
    assert (row["broker"], row["halfOffset"], row["nextCheckInMs"]) == ("127.0.0.1:10911", 17, 30_000)


def test_no_rows_are_an_empty_array(capsys: pytest.CaptureFixture[str]) -> None:
    print_json([])

    assert json.loads(capsys.readouterr().out) == []
