"""The Celery application of the credit service. Redis may lose all tasks, because the broker still has each order."""

import os
from typing import Final

from celery import Celery

CREDIT_TASK: Final = "credit_service.credit_orders"
REVERSAL_TASK: Final = "credit_service.reverse_credits"
"""The name of the task that writes reversals.

It differs from the task for credits, because a worker of an older version would write a reversal as a credit. Such a worker
rejects this task.
"""
QUEUE: Final = "credits"

_VARIABLES_OF_CELERY: Final = (
    "CELERY_BROKER_URL", "CELERY_BROKER_READ_URL", "CELERY_BROKER_WRITE_URL", "CELERY_RESULT_BACKEND",
)  # fmt: skip

_TRANSPORT: Final = "credit_service.adapters.redis_transport:Transport"
_TASK_TIME_LIMIT_S: Final = 30
_VISIBILITY_TIMEOUT_S: Final = 60
"""The time in seconds after which an unacknowledged task goes to another worker. It is longer than a task may run."""
_RESULT_EXPIRES_S: Final = 300
_CONNECT_TIMEOUT_S: Final = 2
_SOCKET_TIMEOUT_S: Final = 5


def create_celery(redis_url: str) -> Celery:
    """Returns the Celery application that sends or executes tasks. Does not connect.

    It removes Celery's environment variables from the process, because they would override `redis_url`.
    """
    for name in _VARIABLES_OF_CELERY:
        os.environ.pop(name, None)
    app = Celery("credit_service", broker=redis_url, backend=redis_url, set_as_current=False)
    app.conf.update(
        task_default_queue=QUEUE,
        task_serializer="json",
        result_serializer="json",
        accept_content=["json"],
        # If a worker dies before it acknowledges a task, another one runs it. The ledger makes a second run harmless.
        task_acks_late=True,
        # If a process dies, the consumer gets an error. Otherwise a task that kills its process would be retried forever.
        task_reject_on_worker_lost=False,
        task_time_limit=_TASK_TIME_LIMIT_S,
        # A running task completes, including its database commit, although Redis is gone.
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_send_task_events=False,
        # Remote control is off: its queue polls Redis each second, and a hanging Redis would block the loop.
        worker_enable_remote_control=False,
        result_expires=_RESULT_EXPIRES_S,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_connection_timeout=_CONNECT_TIMEOUT_S,
        broker_transport=_TRANSPORT,
        # Otherwise Celery takes fewer tasks after a lost connection, until all running ones have ended.
        worker_enable_prefetch_count_reduction=False,
        broker_transport_options={
            "visibility_timeout": _VISIBILITY_TIMEOUT_S,
            "socket_connect_timeout": _CONNECT_TIMEOUT_S,
            "socket_timeout": _SOCKET_TIMEOUT_S,
        },
        # The waiting consumer decides when to retry.
        task_publish_retry=False,
        result_backend_transport_options={"retry_policy": {"timeout": float(_CONNECT_TIMEOUT_S)}},
        redis_socket_connect_timeout=_CONNECT_TIMEOUT_S,
        redis_socket_timeout=float(_SOCKET_TIMEOUT_S),
    )
    return app
