"""Plays many cells side by side, a process for each processor."""

import asyncio
import os
import signal
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from tutorials.race.cell import play, silence
from tutorials.race.entries import find_fault, find_way, ways_with
from tutorials.race.faults import Fault
from tutorials.race.figures import Figures
from tutorials.race.way import Way


def play_cell(way: str, fault: str, orders: int, seed: int, file: Path | None = None) -> Figures:
    """Plays the cell in an event loop and a temporary folder of its own. Raises NoSuchEntry."""
    with tempfile.TemporaryDirectory(prefix="race-") as folder, silence():
        cell = play(find_way(ways_with(file), way), find_fault(fault), orders=orders, seed=seed, folder=Path(folder).resolve())
        return asyncio.run(cell)


def play_cells(
    cells: Sequence[tuple[type[Way], Fault]], *, orders: int, seed: int, file: Path | None = None, processes: int | None = None
) -> Iterator[Figures]:
    """The figures of each cell, in the order in which they end."""
    if len(cells) == 1:
        [(way, fault)] = cells
        yield play_cell(way.name, fault.value, orders, seed, file)
        return
    pool = ProcessPoolExecutor(processes or os.cpu_count(), initializer=_leave_ctrl_c_to_the_parent)
    try:
        playing = [pool.submit(play_cell, way.name, fault.value, orders, seed, file) for way, fault in cells]
        for ended in as_completed(playing):
            yield ended.result()
    finally:
        pool.shutdown(cancel_futures=True)  # what is played already ends; nothing more begins


def _leave_ctrl_c_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
