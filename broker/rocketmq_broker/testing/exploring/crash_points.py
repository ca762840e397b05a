"""Places in a program's code where it may die, and calls that may fail, as the plan says."""

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
    """So many places are passed before it happens; 1 for the next one."""
    act: Callable[[], object]


class CrashPoints:
    """The armed faults of all programs. `passed` and `called` are what the programs call, `decides` what the network does."""

    def __init__(self) -> None:
        """Begins with no fault."""
        self._deaths: dict[str, list[_ArmedFault]] = {}
        self._decisions: dict[str, list[_ArmedFault]] = {}
        self._failures: dict[str, list[_ArmedFault]] = {}
        self.errors: list[BaseException] = []
        """The errors that calls were made to raise."""
        self.has_points = False
        self.has_decisions = False
        self.has_calls = False

    def passed(self, process: SimulatedProcess) -> None:
        """Ends the process here if the plan says so: nothing of a thread goes on, and of a task only its `finally`."""
        self.has_points = True
        if not _counted(self._deaths.get(process.name, [])):
            return
        thread = getcurrent()
        while thread.parent is not None:
            thread.parent.switch()
        raise Killed

    def decides(self, name: str) -> None:
        """Ends the program of that name, which is about to tell its decision, if the plan says so. Raises Killed."""
        self.has_decisions = True
        if _counted(self._decisions.get(name, [])):
            raise Killed

    def called(self, process: SimulatedProcess, error: BaseException) -> None:
        """Raises the error if the plan says so."""
        self.has_calls = True
        if _counted(self._failures.get(process.name, [])):
            self.errors.append(error)
            raise error

    async def arm_death(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        """Lets a program die at a crash point (`rocketmq_broker.testing.simulation.faults.Effect`)."""
        self._deaths.setdefault(fault.where, []).append(_death(faults, fault, "dies at a crash point"))

    async def arm_decision(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        """Lets a program die when it tells a decision."""
        self._decisions.setdefault(fault.where, []).append(_death(faults, fault, "dies as it tells its decision, which is lost"))

    async def arm_failure(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        """Lets a call of a program fail."""

        def fail() -> None:
            faults.has_fired(fault)
            faults.world.history.note(fault.where, "fault", "a call fails")

        self._failures.setdefault(fault.where, []).append(_ArmedFault(fault.whole("nth"), fail))

    def disarm(self) -> None:
        """Takes back what has not happened yet."""
        self._deaths.clear()
        self._decisions.clear()
        self._failures.clear()


def _death(faults: FaultInjector, fault: PlannedEvent, told: str) -> _ArmedFault:
    def die() -> None:
        faults.has_fired(fault)
        faults.world.history.note(fault.where, "fault", told)
        faults.program(fault).kill(fault.for_s)

    return _ArmedFault(fault.whole("nth"), die)


def _counted(armed: list[_ArmedFault]) -> bool:
    """Counts one place. Returns whether a fault happens there."""
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
