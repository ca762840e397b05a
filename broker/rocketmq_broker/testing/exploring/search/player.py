"""The main loop of a search process, which runs the requested worlds one after another."""

from __future__ import annotations

import logging
import os
import time
import traceback
from dataclasses import replace
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from threading import Thread
from typing import NamedTuple

from rocketmq_broker.testing.exploring.errors import UnusableTest
from rocketmq_broker.testing.exploring.search.worlds import RUNS_TO_ITS_END, FoundBroken, WorldEnd, Worlds
from rocketmq_broker.testing.simulation.plan import Plan, UnreadablePlan


class PlayRequest(NamedTuple):
    """A request to run a world."""

    plan: Plan | int
    """A plan, or a seed from which the plan is drawn."""
    is_recorded: bool = False
    """Whether the result contains the readable events."""

    def without_end(self, worlds: Worlds, text: str, cpu_s: float = 0.0) -> WorldEnd:
        """Returns the result of a world that did not finish."""
        plan = worlds.plan_of(self.plan) if isinstance(self.plan, int) else self.plan
        return WorldEnd(plan, "", {}, 0.0, (FoundBroken(RUNS_TO_ITS_END, text),), cpu_s=cpu_s)


def play_requests(connection: Connection, worlds: Worlds) -> None:
    """Runs requested worlds until the connection is closed. The process also ends when its parent process ends."""
    Thread(target=_end_with_parent, daemon=True).start()
    logging.disable(logging.CRITICAL)
    try:
        while True:
            request: PlayRequest = connection.recv()
            connection.send(_played(worlds, request))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _played(worlds: Worlds, request: PlayRequest) -> WorldEnd | UnusableTest | UnreadablePlan:
    """Runs a world and returns its result, or the error of a test or plan that cannot be run.

    Another exception counts as a violated guarantee.
    """
    begun_s = time.process_time()
    try:
        end = worlds.play(request.plan, request.is_recorded)
    except (UnusableTest, UnreadablePlan) as error:
        return error
    except Exception as error:
        return request.without_end(worlds, _described(error), time.process_time() - begun_s)
    happenings = end.happenings if request.is_recorded else ()
    return replace(end, cpu_s=time.process_time() - begun_s, happenings=happenings, error=None)


def _described(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {frames[-1].name}, {os.path.basename(frames[-1].filename)} line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {error}{place}"


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
