"""The worker's heartbeat: a Celery bootstep that reports the worker's tasks, and restarts a worker that takes none."""

import logging
import signal
from collections.abc import Callable
from typing import Any, Final

from celery import bootsteps
from celery.worker.consumer import Consumer
from redis import RedisError

from credit_service.adapters.celery_app import QUEUE
from credit_service.adapters.worker_heartbeats import HEARTBEAT_INTERVAL_S, Heartbeat, WorkerHeartbeats
from credit_service.worker.taking import Taking
from rocketmq_broker.world import World

TIMEOUT_S: Final = 1.0
"""The time-out in seconds of each Redis command of a heartbeat. The worker takes no task while it sends a heartbeat."""
START_AGAIN_AFTER_S: Final = 60.0
"""The time in seconds after which a worker restarts if it takes none of the waiting tasks: twice the time limit of a task."""
LOOP_TIMEOUT_S: Final = 120
"""The time in seconds without a heartbeat after which the worker restarts.

Each call to Redis ends after a few seconds. So the worker's event loop either hangs or cannot connect to Redis.
"""

logger = logging.getLogger(__name__)


def heartbeat_step(
    heartbeats: WorkerHeartbeats,
    world: World,
    *,
    name: str,
    processes: int,
    taking: Taking,
    start_again: Callable[[str], None],
) -> type[bootsteps.StartStopStep]:
    """Returns a bootstep for `app.steps["consumer"]` that sends a heartbeat every few seconds.

    It runs on the worker's event loop, so that the heartbeats stop if the loop hangs. `taking` counts the worker's tasks.
    `start_again` is called with a reason if the worker takes none of the waiting tasks.
    """
    began_s, host, pid = world.steady_s(), world.host_name(), world.process_id()

    def beat() -> None:
        signal.alarm(LOOP_TIMEOUT_S)
        heartbeat = Heartbeat(
            name=name,
            host=host,
            pid=pid,
            processes=processes,
            age_s=world.steady_s() - began_s,
            tasks_taken=taking.tasks,
            taken_s_ago=taking.taken_s_ago,
            takes_none_for_s=taking.none_for_s,
        )
        waiting = None
        try:
            waiting = heartbeats.beat(heartbeat, QUEUE)
        except RedisError as error:
            logger.warning("no heartbeat: %s", error)
        taking.look(waiting)
        if taking.none_for_s >= START_AGAIN_AFTER_S:
            start_again(f"{waiting} tasks wait in Redis, and it has taken none for {taking.none_for_s:.0f} s")

    class HeartbeatStep(bootsteps.StartStopStep):
        requires = ("celery.worker.consumer.tasks:Tasks",)

        def __init__(self, consumer: Consumer, **options: Any) -> None:
            super().__init__(consumer, **options)
            self._timer: Any = None

        def start(self, consumer: Consumer) -> None:
            beat()
            self._timer = consumer.timer.call_repeatedly(HEARTBEAT_INTERVAL_S, beat)

        def stop(self, consumer: Consumer) -> None:
            """Stops the heartbeat. Celery also calls this after a lost connection, and calls `start` for the next connection."""
            if self._timer is None:
                return
            self._timer.cancel()
            self._timer = None
            try:
                heartbeats.leave(name, pid)
            except RedisError as error:
                logger.debug("no farewell: %s", error)

        shutdown = stop

    return HeartbeatStep
