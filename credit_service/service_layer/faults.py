"""Classifies the failure of a task as an outage or a possible bad order, and chooses the next step.

A possible outage is waited out, because it costs only time. An order is considered bad, and uses up a redelivery, only if other
orders are written while its own task fails. So neither a stalled database nor a bug in all tasks of a worker uses up
redeliveries. A failure that repeatedly affects the same orders, and no others, is not treated as an outage. Rows that the
database refuses are handled by `service_runtime.failing.refusals`.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final


class Fault(Enum):
    """The possible source of a failure."""

    OUTAGE = auto()
    """The infrastructure failed. The orders are not the cause."""
    SUSPECT = auto()
    """The cause may be an order, a bug in the worker, or an outage that cannot be distinguished from these."""


_FAULT_OF: Final = {
    # Errors of the database, as the ledger raises them.
    "LedgerUnavailable": Fault.OUTAGE,
    "DatabaseUnusable": Fault.OUTAGE,
    # Connections of any kind: builtin errors and those of Redis, kombu and SQLAlchemy have these names.
    "OSError": Fault.OUTAGE,
    "ConnectionError": Fault.OUTAGE,
    "TimeoutError": Fault.OUTAGE,
    "OperationalError": Fault.OUTAGE,
    "InterfaceError": Fault.OUTAGE,
    "RedisError": Fault.OUTAGE,
    # Errors of a worker of another version, or with a broken installation.
    "NotRegistered": Fault.OUTAGE,
    "ImportError": Fault.OUTAGE,
    "SyntaxError": Fault.OUTAGE,
    # An operator revoked the task or ended its worker.
    "TaskRevokedError": Fault.OUTAGE,
    "Terminated": Fault.OUTAGE,
    "WorkerShutdown": Fault.OUTAGE,
    "WorkerTerminate": Fault.OUTAGE,
    # A single order may cause this in its worker; a failing machine causes it in all workers.
    "WorkerLostError": Fault.SUSPECT,
    "TimeLimitExceeded": Fault.SUSPECT,
    "SoftTimeLimitExceeded": Fault.SUSPECT,
    "MemoryError": Fault.SUSPECT,
    # The database accepted a row but did not store it. This may affect one order or all of them.
    "CreditNotStored": Fault.SUSPECT,
}
"""Maps names of error classes to faults.

The error of a task reaches this process only as a name, and its class may be unknown here.
"""


def fault_of(error: BaseException) -> Fault:
    """Classifies the error of a task by the names of its class and base classes. Any unlisted error is SUSPECT."""
    for kind in type(error).__mro__:
        fault = _FAULT_OF.get(kind.__name__)
        if fault is not None:
            return fault
    return Fault.SUSPECT


class FaultStep(Enum):
    """The next step for orders whose task failed."""

    HOLD = auto()
    """Keep the orders, pause, and try again."""
    SPLIT = auto()
    """Try each half separately, to find the order that causes the failure."""
    GIVE_BACK = auto()
    """Answer RECONSUME_LATER, which counts as one of the order's redeliveries."""
    GIVE_WAY = auto()
    """Redeliver the order later, so that others can be processed. This does not count as a redelivery."""


FAILURES_ALONE: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRecord:
    """The facts about the orders of a failed task, from which `next_step` chooses."""

    orders: int
    tries: int = 0
    """The number of failed tasks that made these orders suspect."""
    others_pass: bool = False
    """True if tasks for other orders succeeded between the first failure of these orders and the start of this attempt."""
    failures_alone: int = 0
    """The number of consecutive failures of these orders, if tasks of other orders passed between the failures."""
    is_in_the_way: bool = False
    """True if these tasks must be postponed so that others can run. See `Holds.is_in_the_way`."""


def next_step(fault: Fault, record: FaultRecord) -> FaultStep:
    """Returns the next step after a failed task."""
    is_outage = fault is Fault.OUTAGE and record.failures_alone < FAILURES_ALONE
    if is_outage:
        return FaultStep.HOLD
    if record.orders > 1:
        return FaultStep.SPLIT
    if record.others_pass or record.failures_alone >= FAILURES_ALONE:
        return FaultStep.GIVE_BACK
    if record.is_in_the_way:
        return FaultStep.GIVE_WAY
    return FaultStep.HOLD
