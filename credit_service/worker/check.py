"""`python -m credit_service.worker --check`: checks whether the worker of this name is alive and takes tasks, for a container.

It reads that worker's heartbeat within a second. It has the same variables and flags as the worker.
"""

import os
import sys
from typing import Final

from pydantic import ValidationError
from pydantic_settings import CliApp
from redis import RedisError

from credit_service.adapters.worker_heartbeats import Heartbeat, LivingWorker, WorkerHeartbeats
from credit_service.settings import WorkerSettings
from rocketmq_broker.world import current_world
from service_runtime.starting.start import first_error, say

PROGRAM: Final = "credit_service.worker --check"
_TIMEOUT_S: Final = 0.3
"""The time-out in seconds of each step of reading the heartbeat."""


def main() -> int:
    """Returns the exit status: 0 if the worker is alive and takes tasks, 1 otherwise, 2 for an invalid setting."""
    try:
        settings = CliApp.run(WorkerSettings, cli_args=[argument for argument in sys.argv[1:] if argument != "--check"])
    except ValidationError as error:
        return say(PROGRAM, first_error(error), 2)
    name = settings.worker_name
    try:
        heartbeats = WorkerHeartbeats(settings.redis_url.get_secret_value(), timeout_s=_TIMEOUT_S)
        worker = find_worker(heartbeats.living(), name)
    except (RedisError, ValueError) as error:
        return say(PROGRAM, f"Redis does not answer: {error}", 1)
    if worker is None:
        return say(PROGRAM, f"no heartbeat of a worker named {name} for some seconds", 1)
    heartbeat = worker.heartbeat
    if not worker.takes_tasks:
        waited_s = heartbeat.takes_none_for_s or 0.0
        return say(
            PROGRAM, f"worker {name} (process {heartbeat.pid}) has taken none of the tasks that wait, for {waited_s:.0f} s", 1
        )
    heard = f"sent a heartbeat {worker.heard_s_ago:.1f} s ago, up for {heartbeat.age_s:.0f} s"
    print(f"worker {name} (process {heartbeat.pid}) {heard}, {_tasks(heartbeat)}")
    return 0


def _tasks(heartbeat: Heartbeat) -> str:
    if heartbeat.taken_s_ago is None:
        return "has taken no task yet"
    return f"has taken {heartbeat.tasks_taken} tasks, the last one {heartbeat.taken_s_ago:.0f} s ago"


def find_worker(living: list[LivingWorker], name: str) -> LivingWorker | None:
    """Returns the worker of this name with the latest heartbeat. Ignores a worker of this host whose process is gone."""
    mine = [worker for worker in living if worker.heartbeat.name == name and not _is_dead(worker.heartbeat)]
    return min(mine, key=lambda worker: worker.heard_s_ago, default=None)


def _is_dead(heartbeat: Heartbeat) -> bool:
    if heartbeat.host != current_world().host_name():
        return False
    try:
        os.kill(heartbeat.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
