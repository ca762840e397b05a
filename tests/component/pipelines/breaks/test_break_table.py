"""Tests of the table of breaks over several runs."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipelines.breaks.break_table import GONE, BreakTable, Changes
from pipelines.commands.breaks import commands
from pipelines.errors import BreaksUnusable
from tests.unit.pipelines.page.rows import matched, row

LOST = row("missing_credit", cause="dead_letter", order_id="lost", at_stake_cents=1250)
DOUBLED = row("double_credit", cause="one_message", order_id="doubled", at_stake_cents=9900)
HEALTHY = [matched(9, latency_step=1), row("in_flight", cause="young", order_id="young"), row("rolled_back", stage=None)]


@pytest.fixture
def table(tmp_path: Path) -> BreakTable:
    return BreakTable(tmp_path / "data" / "breaks.db")


def test_a_run_opens_breaks_and_the_dearest_comes_first(table: BreakTable) -> None:
    assert table.update([LOST, DOUBLED, *HEALTHY], 100) == Changes(opened=2, still_open=2, closed=0)
    assert [(one.subject, one.at_stake_cents, one.first_seen_ms) for one in table.list()] == [
        ("order doubled", 9900, 100),
        ("order lost", 1250, 100),
    ]


def test_the_next_run_keeps_number_owner_and_first_sight(table: BreakTable) -> None:
    table.update([LOST], 100)
    table.assign(1, "ada", "asked the bank")
    assert table.update([LOST], 200) == Changes(opened=0, still_open=1, closed=0)
    one = table.find(1)
    assert (one.first_seen_ms, one.last_seen_ms, one.owner, one.note) == (100, 200, "ada", "asked the bank")


def test_a_break_that_is_gone_is_closed_by_itself(table: BreakTable) -> None:
    table.update([LOST, DOUBLED], 100)
    assert table.update([DOUBLED], 200) == Changes(opened=0, still_open=1, closed=1)
    assert [one.subject for one in table.list()] == ["order doubled"]
    assert (table.find(1).closed_at_ms, table.find(1).closed_because) == (200, GONE)


def test_a_break_that_comes_again_is_another_one(table: BreakTable) -> None:
    for as_of_ms, rows in ((1, [LOST]), (2, []), (3, [LOST])):
        table.update(rows, as_of_ms)
    assert [(one.number, one.closed_at_ms) for one in table.list(with_closed=True)] == [(1, 2), (2, None)]


def test_a_break_of_another_class_is_still_the_same_break(table: BreakTable) -> None:
    table.update([LOST], 1)
    assert table.update([{**DOUBLED, "order_id": "lost"}], 2) == Changes(opened=0, still_open=1, closed=0)
    assert (table.find(1).finding, table.find(1).first_seen_ms) == ("double_credit", 1)


def test_what_a_person_closed_stays_closed_while_it_is_found_unchanged(table: BreakTable) -> None:
    table.update([LOST], 1)
    table.close(1, "refunded", 2)
    assert table.update([LOST], 3) == Changes(opened=0, still_open=0, closed=0)
    assert (table.find(1).closed_because, table.find(1).last_seen_ms) == ("refunded", 3)


def test_what_a_person_closed_is_opened_anew_when_it_changes(table: BreakTable) -> None:
    table.update([LOST], 1)
    table.close(1, "refunded", 2)
    assert table.update([{**LOST, "at_stake_cents": 1251}], 3) == Changes(opened=1, still_open=1, closed=0)
    assert table.find(1).closed_at_ms is None


def test_balances_and_records_without_an_order_are_breaks_too(table: BreakTable) -> None:
    table.update([row("balance_mismatch", customer="ada"), row("damaged_message", transaction_id="at 77")], 1)
    assert {one.subject for one in table.list()} == {"customer ada", "record at 77"}


def test_a_run_that_began_before_the_last_one_is_refused_and_changes_nothing(table: BreakTable) -> None:
    table.update([LOST], 200)
    with pytest.raises(BreaksUnusable, match="a later run"):
        table.update([], 100)
    assert len(table.list()) == 1


def test_breaks_are_chosen_by_owner_and_class(table: BreakTable) -> None:
    table.update([LOST, DOUBLED], 1)
    table.assign(2, "ada")
    assert [one.number for one in table.list(owner="ada")] == [2]
    assert [one.number for one in table.list(finding="missing_credit")] == [1]


def test_a_break_cannot_be_closed_twice_nor_without_being_there(table: BreakTable) -> None:
    table.update([LOST], 1)
    table.close(1, "refunded", 2)
    with pytest.raises(BreaksUnusable, match="already closed"):
        table.close(1, "again", 3)
    with pytest.raises(BreaksUnusable, match="no break has the number 7"):
        table.find(7)


def test_a_file_that_is_no_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a database, but long enough to be taken for one" * 20)
    with pytest.raises(BreaksUnusable, match="not a database"):
        BreakTable(tmp_path / "text").list()


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(commands, arguments, env={"COLUMNS": "160"})
    return done.exit_code, done.output


def test_breaks_are_listed_shown_assigned_and_closed(tmp_path: Path) -> None:
    file = str(tmp_path / "breaks.db")
    BreakTable(Path(file)).update([LOST, {**DOUBLED, "order_id": "[red]\x1b[2J"}], 1)
    code, listed = run("list", "--breaks", file)
    assert code == 0
    assert "12.50 EUR" in listed
    assert "[red]\\x1b[2J" in listed
    assert "about: order [red]\\x1b[2J" in run("show", "2", "--breaks", file)[1]
    assert "owner: ada" in run("assign", "1", "ada", "--note", "asked", "--breaks", file)[1]
    assert "closed: refunded" in run("close", "1", "--reason", "refunded", "--breaks", file)[1]
    assert "note: asked" in run("show", "1", "--breaks", file)[1]
    assert "order lost" not in run("list", "--breaks", file)[1]
    assert "order lost" in run("list", "--closed", "--breaks", file)[1]


def test_what_cannot_be_done_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    absent = str(tmp_path / "absent.db")
    assert run("list", "--breaks", absent) == (
        2, f"breaks {absent}: no such file; run reconcile --breaks {absent} to create it\n",
    )  # fmt: skip
    assert not Path(absent).exists()
