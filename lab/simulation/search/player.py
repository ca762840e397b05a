"""The work of one process of the search: it plays the worlds that it is told to, one after another."""

from __future__ import annotations

import logging
import os
import time
import traceback
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from threading import Thread
from typing import NamedTuple

from lab.simulation.search.worlds import WorldEnd, Worlds, broken_of, without_end
from rocketmq_broker.testing.simulation.plan import Plan


class Told(NamedTuple):
    """What a process is told to play."""

    plan: Plan | int
    """A plan, or the seed of one."""
    with_happenings: bool = False


def play_what_is_told(connection: Connection, worlds: Worlds) -> None:
    """Plays until the other end of the connection closes. Ends with its parent process, whatever it is doing."""
    Thread(target=_end_with_parent, daemon=True).start()
    logging.disable(logging.CRITICAL)
    try:
        while True:
            told: Told = connection.recv()
            connection.send(play_one(worlds, told))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def play_one(worlds: Worlds, told: Told) -> WorldEnd:
    """Returns the end of a world. An error of its code is a broken promise as others are."""
    plan = worlds.plan_of(told.plan) if isinstance(told.plan, int) else told.plan
    begun_s = time.process_time()
    try:
        played = worlds.play(plan)
    except Exception as error:
        return without_end(plan, _told_error(error), time.process_time() - begun_s)
    return WorldEnd(
        plan,
        played.digest,
        {str(name): count for name, count in played.fired.items()},
        played.simulated_s,
        time.process_time() - begun_s,
        tuple(broken_of(violation) for violation in played.violations),
        tuple(played.happenings) if told.with_happenings else (),
    )


def _told_error(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {frames[-1].name}, {os.path.basename(frames[-1].filename)} line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {error}{place}"


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
