"""A credit worker whose process exits or hangs when it credits an order of one customer, like a bug in native code."""

import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

from credit_service.adapters import drain_task
from credit_service.service_layer.crediting import Crediting
from credit_service.worker.process import main
from rocketmq_broker.databases.inbox import InboxMessage

BUG = os.environ["BUG"]
drain_task.TASK_TIME_LIMIT_S = int(os.environ["TIME_LIMIT_S"])  # type: ignore[misc]
_credit = Crediting.credit


def credit(self: Crediting[Any], session: Any, messages: Sequence[InboxMessage]) -> None:
    _credit(self, session, messages)
    if any(b"mallory" in message.body for message in messages):
        if BUG == "hang":
            time.sleep(3600)
        if BUG == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(1)


Crediting.credit = credit  # type: ignore[method-assign]
sys.exit(main())
