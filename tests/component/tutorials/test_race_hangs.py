"""Tests that a reader's approach that waits forever ends the race with an error."""

from pathlib import Path

from typer.testing import CliRunner

from tutorials.race.__main__ import app

SENDS_UNTIL_IT_WORKS = """
import asyncio

from rocketmq_broker.client import ClientError
from tutorials.race.way import Way


class Stubborn(Way):
    name = title = "stubborn"

    async def start(self):
        self.producer = await self.process.producer("order-producers")

    async def place(self, order):
        async with self.database.writing(order) as writing:
            writing.store(order)
        while True:
            try:
                return await self.producer.send(order.message())
            except ClientError:
                await asyncio.sleep(600)
"""


def test_a_way_whose_place_waits_for_a_broker_that_is_down_is_told_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "stubborn.py"
    file.write_text(SENDS_UNTIL_IT_WORKS)
    cells = ["--cell", "stubborn/broker-down", "--cell", "stubborn/none"]  # two: each is played in a process of its own
    result = CliRunner().invoke(app, ["--orders", "25", "--add", str(file), *cells], env={"COLUMNS": "400"})
    assert (result.exit_code, result.exception.__class__) == (1, SystemExit)
    assert "the race failed: stubborn/broker-down hangs: `place` has not returned after an hour" in result.output
    assert "`self.process.run(...)`" in result.output
