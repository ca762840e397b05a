"""What the failure of a task says, an outage or perhaps a bad order, and what to do then.

An outage costs time and nothing else, so whatever may be one is waited out. An order is blamed, and spends a redelivery, only
where others pass while its own task fails: so neither a stalled database nor a bug in all tasks of a worker spends any.
"""

from enum import Enum, auto
from typing import Final


class Fault(Enum):
    """Where a failure may come from."""

    OUTAGE = auto()
    """From the infrastructure alone: the orders are innocent."""
    SUSPECT = auto()
    """From one order, from a mistake in the worker, or from an outage in disguise."""


_FAULT_OF: Final = {
    # The database, as the ledger tells it.
    "LedgerUnavailable": Fault.OUTAGE,
    "DatabaseUnusable": Fault.OUTAGE,
    # Connections of any kind: builtin errors and those of Redis, kombu and SQLAlchemy bear these names.
    "OSError": Fault.OUTAGE,
    "ConnectionError": Fault.OUTAGE,
    "TimeoutError": Fault.OUTAGE,
    "OperationalError": Fault.OUTAGE,
    "InterfaceError": Fault.OUTAGE,
    "RedisError": Fault.OUTAGE,
    # A worker of another version, or installed by halves.
    "NotRegistered": Fault.OUTAGE,
    "ImportError": Fault.OUTAGE,
    "SyntaxError": Fault.OUTAGE,
    # Somebody revoked the task or ended its worker.
    "TaskRevokedError": Fault.OUTAGE,
    "Terminated": Fault.OUTAGE,
    "WorkerShutdown": Fault.OUTAGE,
    "WorkerTerminate": Fault.OUTAGE,
    # One order may do this to its worker, a machine in trouble to all of them.
    "WorkerLostError": Fault.SUSPECT,
    "TimeLimitExceeded": Fault.SUSPECT,
    "SoftTimeLimitExceeded": Fault.SUSPECT,
    "MemoryError": Fault.SUSPECT,
    # The database took a row and has none: it may do so with one order or with all.
    "CreditNotStored": Fault.SUSPECT,
}
"""By the names of classes: a task's error crosses processes as a name, and its class may be unknown here."""


def fault_of(error: BaseException) -> Fault:
    """What the error of a task says. An error that is not in the table, nor derived from one that is, is SUSPECT."""
    for kind in type(error).__mro__:
        fault = _FAULT_OF.get(kind.__name__)
        if fault is not None:
            return fault
    return Fault.SUSPECT


class Step(Enum):
    """What to do with orders whose task failed."""

    HOLD = auto()
    """Keep them, pause, and try again."""
    SPLIT = auto()
    """Try each half alone, to find the one that is to blame."""
    GIVE_BACK = auto()
    """RECONSUME_LATER: it costs this one order a redelivery."""
    ASK_THE_WORKERS = auto()
    """Try a task without orders, which passes or does not, and HOLD."""


TRIES_BEFORE_GIVING_WAY: Final = 60
"""Some ten minutes."""


def next_step(fault: Fault, *, orders: int, tries: int, others_pass: bool, is_in_the_way: bool) -> Step:
    """What follows when a task with so many orders has failed so many times.

    `others_pass`: other orders have been credited since it failed first. `is_in_the_way`: orders under suspicion occupy all
    threads of the consumer, so that no other order could pass and clear the workers; then one makes room, after some tries.
    """
    if fault is Fault.OUTAGE:
        return Step.HOLD
    if orders > 1:
        return Step.SPLIT
    if others_pass:
        return Step.GIVE_BACK
    if is_in_the_way and tries >= TRIES_BEFORE_GIVING_WAY:
        return Step.ASK_THE_WORKERS
    return Step.HOLD


_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 10.0


def pause_s(failures: int) -> float:
    """How long to wait after so many failures in a row: doubles from 0.5 s to 10 s."""
    return min(_FIRST_PAUSE_S * 2.0 ** (min(failures, 30) - 1), _LONGEST_PAUSE_S)
