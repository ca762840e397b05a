"""Writes credits by way of Celery: hands a batch to a worker and waits until its task has committed."""

import contextlib
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from celery import Celery
from celery.exceptions import TimeoutError as ResultTimeout
from celery.result import AsyncResult

from credit_service.adapters.celery_app import CREDIT_TASK
from credit_service.domain.credit import Credit, CreditOutcome
from credit_service.service_layer.order_listener import CreditingUnavailable

_SLICE_S: Final = 0.5
"""How soon a wait notices that the service stops."""

logger = logging.getLogger(__name__)


class CeleryCrediting:
    """See `service_layer.order_listener.Crediting`; safe to use from several threads."""

    def __init__(self, app: Celery, *, timeout_s: float) -> None:
        """`timeout_s` is how long a batch waits for its task; a task nobody waits for any more does not start."""
        self._app = app
        self._timeout_s = timeout_s
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Lets all waits end soon; what they waited for will be delivered again."""
        self._stopping.set()

    def credit(self, credits: Sequence[Credit]) -> list[CreditOutcome]:
        """One outcome for each credit. Raises CreditingUnavailable when Redis, the workers or the database fail."""
        try:
            result = self._app.send_task(CREDIT_TASK, args=[[asdict(credit) for credit in credits]], expires=self._timeout_s)
        except Exception as error:
            raise CreditingUnavailable(f"the task could not be sent: {_in_one_line(error)}") from error
        try:
            return [CreditOutcome(outcome) for outcome in self._wait_for(result)]
        except CreditingUnavailable:
            self._stop_expecting(result)
            raise

    def _wait_for(self, result: "AsyncResult[list[str]]") -> list[str]:
        deadline = time.monotonic() + self._timeout_s
        while not self._stopping.is_set() and time.monotonic() < deadline:
            try:
                return result.get(timeout=_SLICE_S)
            except ResultTimeout:
                continue
            except Exception as error:
                raise CreditingUnavailable(f"the task failed: {_in_one_line(error)}") from error
        raise CreditingUnavailable("the service stops" if self._stopping.is_set() else f"no result after {self._timeout_s:g} s")

    def _stop_expecting(self, result: "AsyncResult[list[str]]") -> None:
        """Celery remembers what it still expects; without this each lost task would cost memory for ever."""
        with contextlib.suppress(Exception):
            self._app.backend.remove_pending_result(result)  # type: ignore[attr-defined]


def _in_one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
