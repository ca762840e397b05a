"""The worker's heartbeat: a step of Celery's consumer, so that it beats only while the worker can take tasks."""

import logging
import os
import socket
import time
from typing import Any, Final

from celery import bootsteps
from celery.worker.consumer import Consumer
from redis import RedisError

from credit_service.adapters.worker_heartbeats import HEARTBEAT_INTERVAL_S, Heartbeat, WorkerHeartbeats

TIMEOUT_S: Final = 1.0
"""The worker takes no task meanwhile."""

logger = logging.getLogger(__name__)


def heartbeat_step(heartbeats: WorkerHeartbeats, *, name: str, processes: int) -> type[bootsteps.StartStopStep]:
    """A step for `app.steps["consumer"]`: beats every few seconds on the worker's own event loop, so that a hang stops it too."""
    began_s, host, pid = time.monotonic(), socket.gethostname(), os.getpid()

    def beat() -> None:
        age_s = time.monotonic() - began_s
        try:
            heartbeats.beat(Heartbeat(name=name, host=host, pid=pid, processes=processes, age_s=age_s))
        except RedisError as error:
            logger.warning("no heartbeat: %s", error)

    class HeartbeatStep(bootsteps.StartStopStep):
        requires = ("celery.worker.consumer.tasks:Tasks",)

        def __init__(self, consumer: Consumer, **options: Any) -> None:
            super().__init__(consumer, **options)
            self._timer: Any = None

        def start(self, consumer: Consumer) -> None:
            beat()
            self._timer = consumer.timer.call_repeatedly(HEARTBEAT_INTERVAL_S, beat)

        def stop(self, consumer: Consumer) -> None:
            """Also when the connection to Redis is lost; then it starts again with the next one."""
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
