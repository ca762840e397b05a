"""The main loop of a search process, which runs the requested worlds one after another."""

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
from rocketmq_broker.testing.simulation.databases.scratch import remove_scratch_of
from rocketmq_broker.testing.simulation.plan import Plan, UnreadablePlan


class PlayRequest(NamedTuple):
    """A request to run a world."""

    plan: Plan | int
    """A plan, or a seed from which the plan is drawn."""
    is_recorded: bool = False
    """Whether the result contains the readable events."""
    failure: str | None = None
    """Why the world did not finish, if it ran before in another process: then the result is its plan with this failure."""


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
        if request.failure is not None:
            return _unfinished(worlds, request.plan, request.failure, 0.0)
        end = worlds.play(request.plan, request.is_recorded)
    except (UnusableTest, UnreadablePlan) as error:
        return error
    except Exception as error:
        return _unfinished(worlds, request.plan, described_error(error), time.process_time() - begun_s)
    happenings = end.happenings if request.is_recorded else ()
    return replace(end, cpu_s=time.process_time() - begun_s, happenings=happenings, error=None)


def _unfinished(worlds: Worlds, plan: Plan | int, failure: str, cpu_s: float) -> WorldEnd | UnusableTest:
    """Returns the result of a world that did not finish, or an error if its plan cannot be drawn either."""
    try:
        plan = worlds.plan_of(plan) if isinstance(plan, int) else plan
    except Exception as error:
        return UnusableTest(f"{worlds.name} fails before it calls world.run: {described_error(error)}")
    return WorldEnd(plan, "", {}, 0.0, (FoundBroken(RUNS_TO_ITS_END, failure),), cpu_s=cpu_s)


def described_error(error: BaseException) -> str:
    """Returns the type and the text of an error, and the line that raised it."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    place = f" in {frames[-1].name}, {os.path.basename(frames[-1].filename)} line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {error}{place}"


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        remove_scratch_of(os.getpid())
        os._exit(1)
