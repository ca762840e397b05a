"""The failpoints of the services: steps of the protocol at which the demo makes a process fail once.

The services contain only the names of the failpoints. This module contains their descriptions, and arms failpoints in a folder.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from demo.errors import DemoError
from rocketmq_broker.admin.timeline.event import BROKER, Arrow, Event
from service_runtime.failing.armed_failpoints import Hit, read_hits

MAX_WORD_LENGTH: Final = 200
_ORDERS: Final = "order_service"
_CREDITS: Final = "credit_service"
_WORKER: Final = "credit_worker"
_ON_RECORD: Final = "failpoints"


@dataclass(frozen=True, slots=True)
class Failpoint:
    """A step at which a process can fail."""

    name: str
    process: str
    """The name of the process that fails."""
    step: str
    """The step of the protocol at which the process fails."""
    what: str
    """The description of the failure."""
    then: str
    """The description of the system's recovery."""
    arrow: Arrow
    """The arrow that shows the failure in the sequence diagram."""


FAILPOINTS: Final = (
    Failpoint(
        "lose-half-message",
        _ORDERS,
        "the half message is sent",
        "The half message is not sent.",
        "The client sends it again, in a new transaction.",
        Arrow(_ORDERS, BROKER, "half message", is_lost=True),
    ),
    Failpoint(
        "lose-half-message-answer",
        _ORDERS,
        "its answer comes",
        "The broker stores the half message, but its answer is lost.",
        "The client sends it again, in a new transaction; check-back rolls the first one back.",
        Arrow(BROKER, _ORDERS, "answer", is_lost=True),
    ),
    Failpoint(
        "hold-local-transaction",
        _ORDERS,
        "the local transaction begins",
        "The local transaction starts 6 s late, after a check-back.",
        "The check-back writes the marker ROLLED_BACK, on which the late local transaction fails.",
        Arrow(_ORDERS, _ORDERS, "held for 6 s"),
    ),
    Failpoint(
        "exit-before-local-commit",
        _ORDERS,
        "the local transaction begins",
        "The process exits, as with kill -9, before the local transaction.",
        "Check-back finds no order, and rolls the transaction back; the customer asks again.",
        Arrow(_ORDERS, _ORDERS, "the process ends"),
    ),
    Failpoint(
        "exit-after-local-commit",
        _ORDERS,
        "the local commit is done",
        "The process exits, as with kill -9, before it sends COMMIT.",
        "Check-back finds the order, and the answer is COMMIT.",
        Arrow(_ORDERS, _ORDERS, "the process ends"),
    ),
    Failpoint(
        "lose-commit",
        _ORDERS,
        "END_TRANSACTION is sent",
        "COMMIT is not sent.",
        "Check-back finds the order, and the answer is COMMIT.",
        Arrow(_ORDERS, BROKER, "COMMIT", is_lost=True),
    ),
    Failpoint(
        "lose-rollback",
        _ORDERS,
        "END_TRANSACTION is sent",
        "ROLLBACK is not sent.",
        "Check-back finds the marker ROLLED_BACK, and the answer is ROLLBACK.",
        Arrow(_ORDERS, BROKER, "ROLLBACK", is_lost=True),
    ),
    Failpoint(
        "lose-check-back",
        _ORDERS,
        "a check-back comes",
        "The check-back is lost.",
        "The broker checks back again.",
        Arrow(BROKER, _ORDERS, "check-back", is_lost=True),
    ),
    Failpoint(
        "lose-check-back-answer",
        _ORDERS,
        "a check-back is answered",
        "The answer is not sent.",
        "The broker checks back again.",
        Arrow(_ORDERS, BROKER, "answer", is_lost=True),
    ),
    Failpoint(
        "lose-delivery",
        _CREDITS,
        "the message is delivered",
        "The broker's answer to the pull is lost.",
        "The consumer pulls again from the offset that it has.",
        Arrow(BROKER, _CREDITS, "message", is_lost=True),
    ),
    Failpoint(
        "exit-at-delivery",
        _CREDITS,
        "the message is delivered",
        "The process exits, as with kill -9, before it stores the message in its inbox.",
        "The group's offset at the broker has not passed the message: the broker delivers it again.",
        Arrow(_CREDITS, _CREDITS, "the process ends"),
    ),
    Failpoint(
        "lose-task",
        _CREDITS,
        "the task goes to Redis",
        "The task does not reach Redis.",
        "The message waits in the inbox; the credit service sends another task within a second.",
        Arrow(_CREDITS, "Redis", "task", is_lost=True),
    ),
    Failpoint(
        "exit-before-credit-commit",
        _WORKER,
        "the credit is stored",
        "A worker process exits, as with kill -9, before it stores the credit.",
        "The message is still in the inbox, and the next task credits it.",
        Arrow(_WORKER, _WORKER, "the process ends"),
    ),
    Failpoint(
        "exit-after-credit-commit",
        _WORKER,
        "the credit is stored",
        "A worker process exits, as with kill -9, after it has stored the credit.",
        "The same database commit has removed the message from the inbox: nothing is left to do.",
        Arrow(_WORKER, _WORKER, "the process ends"),
    ),
    Failpoint(
        "exit-before-acknowledgement",
        _CREDITS,
        "the offset goes to the broker",
        "The process exits, as with kill -9, before it commits its offset to the broker.",
        "The broker delivers the message again; the order's credit is there, or its message waits in the inbox: it is credited "
        "once.",
        Arrow(_CREDITS, _CREDITS, "the process ends"),
    ),
)


@dataclass(frozen=True, slots=True)
class FailpointFolder:
    """The folder with the armed failpoints."""

    path: Path

    def arm(self, name: str, meant_for: str) -> None:
        """Arms the failpoint for the next message that contains `meant_for`. Raises DemoError if an argument is invalid."""
        find(name)
        if len(meant_for) > MAX_WORD_LENGTH:
            raise DemoError(f"customer name too long: {len(meant_for)} characters, at most {MAX_WORD_LENGTH}")
        fresh = self.path / f".{name}"
        fresh.write_text(meant_for)
        fresh.replace(self.path / name)

    def disarm(self, name: str) -> None:
        """Disarms the failpoint. Raises DemoError if the name is unknown."""
        (self.path / find(name).name).unlink(missing_ok=True)

    def disarm_all(self, meant_for: str) -> None:
        """Disarms all failpoints that are armed for this customer."""
        for name, armed_for in self.armed().items():
            if armed_for == meant_for:
                self.disarm(name)

    def armed(self) -> dict[str, str]:
        """Returns the customers for whom failpoints are armed, keyed by the failpoint's name."""
        armed = {}
        for failpoint in FAILPOINTS:
            try:
                armed[failpoint.name] = (self.path / failpoint.name).read_text(errors="replace").strip()
            except FileNotFoundError:
                continue
        return armed

    def hits(self) -> list[Hit]:
        """Returns the recorded hits of failpoints, oldest first."""
        return read_hits(self.path)

    def events(self, transaction_id: str) -> list[Event]:
        """Returns the hits of a transaction as events for its timeline."""
        return [_event(hit) for hit in self.hits() if hit.transaction_id == transaction_id]


def find(name: str) -> Failpoint:
    """Returns the failpoint with this name. Raises DemoError if the name is unknown."""
    for failpoint in FAILPOINTS:
        if failpoint.name == name:
            return failpoint
    raise DemoError(f"unknown failpoint {name}; use one of {', '.join(one.name for one in FAILPOINTS)}")


def _event(hit: Hit) -> Event:
    failpoint = find(hit.failpoint)
    return Event(hit.at_ms, f"failpoint {hit.failpoint}: {failpoint.what}", _ON_RECORD, failpoint.arrow)
