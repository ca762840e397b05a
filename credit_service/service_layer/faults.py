"""Classifies the failure of a task, as an outage or perhaps a bad order, and chooses the next step.

An outage costs only time, so every possible outage is waited out. An order is blamed, and spends a redelivery, only if others are
written while its own task fails: so neither a stalled database nor a bug in all tasks of a worker spends any. An outage that
meets the same orders again and again, and no others, is none. Refusals of the database are decided by
`service_runtime.failing.refusals`.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final


class Fault(Enum):
    """The possible source of a failure."""

    OUTAGE = auto()
    """Only the infrastructure: the orders are innocent."""
    SUSPECT = auto()
    """An order, a mistake in the worker, or an outage in disguise."""


_FAULT_OF: Final = {
    # The database, as the ledger reports it.
    "LedgerUnavailable": Fault.OUTAGE,
    "DatabaseUnusable": Fault.OUTAGE,
    # Connections of any kind: builtin errors and those of Redis, kombu and SQLAlchemy have these names.
    "OSError": Fault.OUTAGE,
    "ConnectionError": Fault.OUTAGE,
    "TimeoutError": Fault.OUTAGE,
    "OperationalError": Fault.OUTAGE,
    "InterfaceError": Fault.OUTAGE,
    "RedisError": Fault.OUTAGE,
    # A worker of another version, or with a broken installation.
    "NotRegistered": Fault.OUTAGE,
    "ImportError": Fault.OUTAGE,
    "SyntaxError": Fault.OUTAGE,
    # An operator revoked the task or ended its worker.
    "TaskRevokedError": Fault.OUTAGE,
    "Terminated": Fault.OUTAGE,
    "WorkerShutdown": Fault.OUTAGE,
    "WorkerTerminate": Fault.OUTAGE,
    # One order may do this to its worker; a machine in trouble does it to all of them.
    "WorkerLostError": Fault.SUSPECT,
    "TimeLimitExceeded": Fault.SUSPECT,
    "SoftTimeLimitExceeded": Fault.SUSPECT,
    "MemoryError": Fault.SUSPECT,
    # The database took a row and lacks it: it may do so with one order or with all.
    "CreditNotStored": Fault.SUSPECT,
}
"""By the names of classes: a task's error crosses processes as a name, and its class may be unknown here."""


def fault_of(error: BaseException) -> Fault:
    """Classifies the error of a task by the table and its base classes. Any other error is SUSPECT."""
    for kind in type(error).__mro__:
        fault = _FAULT_OF.get(kind.__name__)
        if fault is not None:
            return fault
    return Fault.SUSPECT


class FaultStep(Enum):
    """The next step for orders whose task failed."""

    HOLD = auto()
    """Keep them, pause, and try again."""
    SPLIT = auto()
    """Try each half alone, to find the one that is to blame."""
    GIVE_BACK = auto()
    """RECONSUME_LATER: it costs this one order a redelivery."""
    GIVE_WAY = auto()
    """It comes again later, so that others can pass; no redelivery is spent."""


FAILURES_ALONE: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRecord:
    """The facts about the orders whose task has just failed."""

    orders: int
    tries: int = 0
    """How many of their tasks failed so that they came under suspicion."""
    others_pass: bool = False
    """Whether tasks of others had passed since the suspicion, before this try began."""
    failures_alone: int = 0
    """How many of their tasks failed in a row, each after tasks of others had passed since the one before."""
    is_in_the_way: bool = False
    """Whether these tasks must give way to others, as `Holds.is_in_the_way` decides."""


def next_step(fault: Fault, record: FaultRecord) -> FaultStep:
    """Returns the step after a failed task."""
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
