"""The Celery application of the credit service. Redis may lose all tasks, because the inbox has each message."""

import os
from typing import Final

from celery import Celery
from kombu import Exchange, Queue

DRAIN_TASK: Final = "credit_service.drain"
"""The name of the task that credits the messages in the inbox."""
QUEUE: Final = "credit_inbox"

_VARIABLES_OF_CELERY: Final = (
    "CELERY_BROKER_URL", "CELERY_BROKER_READ_URL", "CELERY_BROKER_WRITE_URL", "CELERY_RESULT_BACKEND",
)  # fmt: skip

TASK_TIME_LIMIT_S: Final = 30
"""The time in seconds after which a task's process is killed. A task normally ends earlier; see `drain_task.MAX_BATCHES`."""
_CONNECT_TIMEOUT_S: Final = 2
_SOCKET_TIMEOUT_S: Final = 5


def create_celery(redis_url: str, client_name: str | None = None) -> Celery:
    """Returns the Celery application that sends or executes tasks. Does not connect.

    `client_name` is the name of its connections in Redis. It removes Celery's environment variables from the process, because
    they would override `redis_url`.
    """
    for name in _VARIABLES_OF_CELERY:
        os.environ.pop(name, None)
    app = Celery("credit_service", broker=redis_url, set_as_current=False)
    app.conf.update(
        # A task is acknowledged when a worker takes it. If it is lost then, the service sends another one within a second.
        task_queues=[Queue(QUEUE, Exchange(QUEUE), routing_key=QUEUE, no_ack=True)],
        task_default_queue=QUEUE,
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_time_limit=TASK_TIME_LIMIT_S,
        # A running task completes, including its database commit, although Redis is gone.
        worker_cancel_long_running_tasks_on_connection_loss=False,
        # A worker takes a task only if one of its processes is free.
        worker_disable_prefetch=True,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_send_task_events=False,
        # Remote control is off: its queue polls Redis each second, and a hanging Redis would block the loop.
        worker_enable_remote_control=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        # Redis answers with an error when it becomes a replica. Without this option the worker would stop.
        broker_channel_error_retry=True,
        broker_connection_timeout=_CONNECT_TIMEOUT_S,
        # Otherwise Celery takes fewer tasks after a lost connection, until all running ones have ended.
        worker_enable_prefetch_count_reduction=False,
        broker_transport_options={
            "client_name": client_name,
            "socket_connect_timeout": _CONNECT_TIMEOUT_S,
            "socket_timeout": _SOCKET_TIMEOUT_S,
        },
        # The service decides when to send another task.
        task_publish_retry=False,
    )
    return app
