"""Tests of the program of the chapter "Kill everything": a power failure, reproducible outcomes, and invalid settings."""

from typer.testing import CliRunner

from tutorials.kills.__main__ import app
from tutorials.kills.cells import Moment, Victim
from tutorials.kills.playing import play


def test_without_a_sync_a_loss_of_power_leaves_an_order_that_nobody_asks_about() -> None:
    settings = {"flushDiskType": "ASYNC_FLUSH"}
    outcome = play(Moment.STORED, Victim.POWER, settings=settings)
    assert (outcome.on_disk, outcome.orders, outcome.credits) == (["order"], 1, 0)
    assert not outcome.is_consistent
    assert play(Moment.STORED, Victim.EVERYTHING, settings=settings).is_consistent


def test_a_cell_is_played_alike_each_time() -> None:
    first, second = (play(Moment.DELIVERED, Victim.EVERYTHING) for _ in range(2))
    assert first == second


def test_a_setting_that_is_none_is_refused_in_a_sentence() -> None:
    for setting, reason in (("nonsense", "expected NAME=VALUE"), ("flushDiskType=NO", "Invalid enum value")):
        result = CliRunner().invoke(app, ["stored", "power", "--set", setting], env={"COLUMNS": "200"})
        assert result.exit_code == 2
        assert reason in result.output
