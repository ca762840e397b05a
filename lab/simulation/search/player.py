"""The main loop of a search process, which runs the requested simulations one after another."""

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

from lab.simulation.search.worlds import WorldEnd, Worlds, without_end
from rocketmq_broker.testing.simulation.plan import Plan


class PlayRequest(NamedTuple):
    """A request to run a simulation."""

    plan: Plan | int
    """A plan, or a seed from which the plan is created."""
    with_happenings: bool = False


def play_requests(connection: Connection, worlds: Worlds) -> None:
    """Runs requested simulations until the connection is closed. The process also ends when its parent process ends."""
    Thread(target=_end_with_parent, daemon=True).start()
    logging.disable(logging.CRITICAL)
    try:
        while True:
            request: PlayRequest = connection.recv()
            connection.send(play_one(worlds, request))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def play_one(worlds: Worlds, request: PlayRequest) -> WorldEnd:
    """Runs a simulation and returns its result. An exception in the simulated code counts as a violated guarantee."""
    plan = worlds.plan_of(request.plan) if isinstance(request.plan, int) else request.plan
    begun_s = time.process_time()
    try:
        end = worlds.play(plan)
    except Exception as error:
        return without_end(plan, _told_error(error), time.process_time() - begun_s)
    happenings = end.happenings if request.with_happenings else ()
    return replace(end, cpu_s=time.process_time() - begun_s, happenings=happenings)


def _told_error(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {frames[-1].name}, {os.path.basename(frames[-1].filename)} line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {error}{place}"


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
