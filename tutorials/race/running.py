"""Runs many combinations of approach and fault in parallel processes, by default one process per CPU."""

import asyncio
import os
import signal
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from rocketmq_broker.testing.virtual_time import NothingHappens
from tutorials.race.cell import play, silence
from tutorials.race.entries import find_fault, find_way, ways_with
from tutorials.race.results.figures import Figures


class WayHangs(Exception):
    """Raised if an approach waits for an event that cannot occur, so that its run cannot end."""


class Wanted(NamedTuple):
    """A requested run: the names of the approach and the fault, and the number of orders."""

    way: str
    fault: str
    orders: int


def play_cell(way: str, fault: str, orders: int, seed: int, file: Path | None = None) -> Figures:
    """Runs one approach under one fault in its own event loop and temporary folder.

    Raises NoSuchEntry, BrokerCannotRun or WayHangs.
    """
    found = find_way(ways_with(file, on_apache=True), way)
    with tempfile.TemporaryDirectory(prefix="race-") as folder, silence():
        try:
            return asyncio.run(play(found, find_fault(fault), orders=orders, seed=seed, folder=Path(folder).resolve()))
        except NothingHappens:
            raise WayHangs(
                f"{way}/{fault} hangs: `place` has not returned after an hour of virtual time. The next order is placed, and a "
                "stopped broker is restarted, only after it returns: run longer work in a task with `self.process.run(...)`"
            ) from None


def play_cells(
    cells: Sequence[Wanted], *, seed: int, file: Path | None = None, processes: int | None = None
) -> Iterator[Figures]:
    """Yields the figures of each run as soon as it ends. Raises NoSuchEntry, BrokerCannotRun or WayHangs."""
    if len(cells) == 1:
        yield play_cell(*cells[0], seed, file)
        return
    pool = ProcessPoolExecutor(processes or os.cpu_count(), initializer=_leave_ctrl_c_to_the_parent)
    try:
        playing = [pool.submit(play_cell, *cell, seed, file) for cell in cells]
        for ended in as_completed(playing):
            yield ended.result()
    finally:
        pool.shutdown(cancel_futures=True)  # running cells finish, and no others start


def _leave_ctrl_c_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
