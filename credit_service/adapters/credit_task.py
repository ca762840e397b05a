"""The tasks that write credits and reversals, in a worker process."""

from collections.abc import Callable
from functools import cache
from typing import Any

from celery import Celery
from celery.worker.request import Request
from sqlalchemy import Engine

from credit_service.adapters.celery_app import CREDIT_TASK, REVERSAL_TASK
from credit_service.adapters.credit_wire import WireCredit, from_wire
from credit_service.adapters.ledger import Ledger, LedgerUnavailable
from rocketmq_broker.world import World
from service_runtime.database.engine import create_database_engine

WriteEntries = Callable[[list[WireCredit]], list[str]]
"""A function that writes entries and returns an outcome for each."""


class EndingRequest(Request):
    """A task request that frees its slot in the worker even if Redis is unavailable when the task fails.

    Celery's own request would occupy the slot forever.
    """

    def on_failure(self, *args: Any, **options: Any) -> None:
        """Stores the failure and frees the slot. Raises Redis's connection errors."""
        try:
            super().on_failure(*args, **options)
        finally:
            self.acknowledge()

    def on_timeout(self, soft: bool, timeout: float) -> None:
        """Stores the time-out and frees the slot. Raises Redis's connection errors."""
        try:
            super().on_timeout(soft, timeout)
        finally:
            if not soft:
                self.acknowledge()


def writing_to(ledger: Ledger) -> WriteEntries:
    """Returns the function that both tasks call to write to the ledger.

    The function raises LedgerUnavailable, CreditNotStored and UnreadableCredit.
    """

    def write_to_ledger(credits: list[WireCredit]) -> list[str]:
        return [outcome.value for outcome in ledger.credit([from_wire(credit) for credit in credits])]

    return write_to_ledger


def register_credit_task(
    app: Celery,
    database_url: str,
    world: World,
    on_open: Callable[[Engine], None] = lambda _: None,
    wrapped: Callable[[WriteEntries], WriteEntries] = lambda write: write,
) -> None:
    """Adds both tasks to the application. Each worker process opens the database at its first task.

    `on_open` is called with the engine of the opened database. `wrapped` decorates the function that writes to the ledger.
    """

    @cache
    def ledger() -> Ledger:
        engine = create_database_engine(database_url)
        on_open(engine)
        return Ledger(engine, world)

    def write_to_ledger(credits: list[WireCredit]) -> list[str]:
        return writing_to(ledger())(credits)

    write = wrapped(write_to_ledger)

    def write_entries(credits: list[WireCredit], **_of_a_newer_version: object) -> list[str]:
        return write(credits)

    for name in (CREDIT_TASK, REVERSAL_TASK):
        app.task(name=name, throws=(LedgerUnavailable,), Request=EndingRequest)(write_entries)
