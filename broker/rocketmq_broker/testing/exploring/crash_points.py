"""Kills programs at points in their code, and makes calls fail, as the plan requires."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from greenlet import getcurrent

from rocketmq_broker.testing.simulation.faults import FaultInjector
from rocketmq_broker.testing.simulation.plan import PlannedEvent
from rocketmq_broker.testing.simulation.process import Killed, SimulatedProcess


@dataclass(slots=True)
class _ArmedFault:
    left: int
    """The number of occurrences until the fault takes effect; 1 for the next occurrence."""
    act: Callable[[], object]


class CrashPoints:
    """Stores the armed faults of all programs. Programs call `passed` and `called`; the network calls `decides`."""

    def __init__(self) -> None:
        """Creates an empty set of faults."""
        self._deaths: dict[str, list[_ArmedFault]] = {}
        self._decisions: dict[str, list[_ArmedFault]] = {}
        self._failures: dict[str, list[_ArmedFault]] = {}
        self.errors: list[BaseException] = []
        """The errors that were injected into calls."""
        self.has_points = False
        self.has_decisions = False
        self.has_calls = False

    def passed(self, process: SimulatedProcess) -> None:
        """Kills the process here if the plan requires it.

        A thread then runs no further code. A task still runs its `finally` blocks.
        """
        self.has_points = True
        if not _counted(self._deaths.get(process.name, [])):
            return
        thread = getcurrent()
        while thread.parent is not None:
            thread.parent.switch()
        raise Killed

    def decides(self, name: str) -> None:
        """Kills the program `name` before it sends a decision, if the plan requires it. Raises Killed."""
        self.has_decisions = True
        if _counted(self._decisions.get(name, [])):
            raise Killed

    def called(self, process: SimulatedProcess, error: BaseException) -> None:
        """Raises `error` if the plan makes this call fail."""
        self.has_calls = True
        if _counted(self._failures.get(process.name, [])):
            self.errors.append(error)
            raise error

    async def arm_death(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        """Arms a fault that kills a program at a crash point (`rocketmq_broker.testing.simulation.faults.Effect`)."""
        self._deaths.setdefault(fault.where, []).append(_death(faults, fault, "dies at a crash point"))

    async def arm_decision(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        """Arms a fault that kills a program before it sends a decision."""
        self._decisions.setdefault(fault.where, []).append(_death(faults, fault, "dies before it sends its decision"))

    async def arm_failure(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        """Arms a fault that makes a program's call fail."""

        def fail() -> None:
            faults.has_fired(fault)
            faults.world.history.note(fault.where, "fault", "a call fails")

        self._failures.setdefault(fault.where, []).append(_ArmedFault(fault.whole("nth"), fail))

    def disarm(self) -> None:
        """Removes all faults that have not taken effect yet."""
        self._deaths.clear()
        self._decisions.clear()
        self._failures.clear()


def _death(faults: FaultInjector, fault: PlannedEvent, text: str) -> _ArmedFault:
    def die() -> None:
        faults.has_fired(fault)
        faults.world.history.note(fault.where, "fault", text)
        faults.program(fault).kill(fault.for_s)

    return _ArmedFault(fault.whole("nth"), die)


def _counted(armed: list[_ArmedFault]) -> bool:
    """Counts one occurrence of the event for which the faults are armed. Returns whether a fault took effect."""
    due = None
    for fault in armed:
        fault.left -= 1
        if fault.left <= 0 and due is None:
            due = fault
    if due is None:
        return False
    armed.remove(due)
    due.act()
    return True
