"""The credit service's Celery application. Redis is a courier that may lose all tasks: the broker still has each order."""

import os
from typing import Final

from celery import Celery

CREDIT_TASK: Final = "credit_service.credit_orders"
REVERSAL_TASK: Final = "credit_service.reverse_credits"
"""A separate task: an old worker would take a reversal for a credit, but does not know this task."""
QUEUE: Final = "credits"

_VARIABLES_OF_CELERY: Final = (
    "CELERY_BROKER_URL", "CELERY_BROKER_READ_URL", "CELERY_BROKER_WRITE_URL", "CELERY_RESULT_BACKEND",
)  # fmt: skip

_TRANSPORT: Final = "credit_service.adapters.redis_transport:Transport"
_TASK_TIME_LIMIT_S: Final = 30
_VISIBILITY_TIMEOUT_S: Final = 60
"""After that long without an acknowledgement Redis gives a task to another worker; longer than any task may run."""
_RESULT_EXPIRES_S: Final = 300
_CONNECT_TIMEOUT_S: Final = 2
_SOCKET_TIMEOUT_S: Final = 5


def create_celery(redis_url: str) -> Celery:
    """Returns a Celery application for sending tasks or working on them. Does not connect.

    It removes Celery's own variables from the process's environment: a stray one would win over `redis_url`.
    """
    for name in _VARIABLES_OF_CELERY:
        os.environ.pop(name, None)
    app = Celery("credit_service", broker=redis_url, backend=redis_url, set_as_current=False)
    app.conf.update(
        task_default_queue=QUEUE,
        task_serializer="json",
        result_serializer="json",
        accept_content=["json"],
        # A dead worker has not acknowledged its task: another worker takes it, and the ledger makes a second run harmless.
        task_acks_late=True,
        # If a process dies, the consumer gets an error: a task that kills each process would otherwise run for ever.
        task_reject_on_worker_lost=False,
        task_time_limit=_TASK_TIME_LIMIT_S,
        # A running task ends, database commit included, although Redis is gone.
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_send_task_events=False,
        # Remote control is off: its queue would call Redis each second, and a Redis that hangs would stop the loop.
        worker_enable_remote_control=False,
        result_expires=_RESULT_EXPIRES_S,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_connection_timeout=_CONNECT_TIMEOUT_S,
        broker_transport=_TRANSPORT,
        # After a lost connection Celery would take fewer tasks until the running ones have ended, even one that never ends.
        worker_enable_prefetch_count_reduction=False,
        broker_transport_options={
            "visibility_timeout": _VISIBILITY_TIMEOUT_S,
            "socket_connect_timeout": _CONNECT_TIMEOUT_S,
            "socket_timeout": _SOCKET_TIMEOUT_S,
        },
        # The waiting consumer decides when to try again.
        task_publish_retry=False,
        result_backend_transport_options={"retry_policy": {"timeout": float(_CONNECT_TIMEOUT_S)}},
        redis_socket_connect_timeout=_CONNECT_TIMEOUT_S,
        redis_socket_timeout=float(_SOCKET_TIMEOUT_S),
    )
    return app
