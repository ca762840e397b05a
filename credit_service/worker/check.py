"""`python -m credit_service.worker --check`: checks whether the worker with this name fetches tasks from Redis.

The command is a health check for a container, and ends within a second. It accepts the worker's environment variables
and flags.
"""

import sys
from typing import Final

from pydantic import ValidationError
from pydantic_settings import CliApp
from redis import RedisError

from credit_service.adapters.workers import Workers, redis_client
from credit_service.settings import WorkerSettings
from service_runtime.starting.start import first_error, say

PROGRAM: Final = "credit_service.worker --check"
_TIMEOUT_S: Final = 0.3
"""The time-out in seconds of each step."""


def main() -> int:
    """Returns the exit status: 0 if the worker is alive and takes tasks, 1 otherwise, 2 for an invalid setting."""
    try:
        settings = CliApp.run(WorkerSettings, cli_args=[argument for argument in sys.argv[1:] if argument != "--check"])
    except ValidationError as error:
        return say(PROGRAM, first_error(error), 2)
    name = settings.worker_name
    try:
        living = Workers(redis_client(settings.redis_url.get_secret_value(), _TIMEOUT_S)).living()
    except (RedisError, ValueError) as error:
        return say(PROGRAM, f"Redis does not answer: {error}", 1)
    mine = min((worker for worker in living if worker.name == name), key=lambda worker: worker.idle_s, default=None)
    if mine is None:
        return say(PROGRAM, f"Redis has no connection of a worker named {name}", 1)
    if not mine.takes_tasks:
        return say(PROGRAM, f"worker {name} (process {mine.pid}) has asked for no task for {mine.idle_s:.0f} s", 1)
    print(f"worker {name} (process {mine.pid}) asked for a task {mine.idle_s:.0f} s ago, up for {mine.age_s:.0f} s")
    return 0
