"""Kills programs at points in their code, and makes calls fail, as the plan requires."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from greenlet import getcurrent

from rocketmq_broker.testing.exploring.fault_rows import AT_DECISION, AT_POINT, CALL_FAILS
from rocketmq_broker.testing.simulation.faults import Effect, FaultInjector
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
        self._armed: dict[tuple[str, str], list[_ArmedFault]] = {}
        """The faults by kind and program."""
        self.errors: list[BaseException] = []
        """The errors that were injected into calls."""
        self.kinds_without_place = {AT_POINT, AT_DECISION, CALL_FAILS}
        """The kinds of faults that cannot occur, because no program had a crash point, a decision or a call of `may_fail`."""

    def passed(self, process: SimulatedProcess) -> None:
        """Kills the process here if the plan requires it.

        A thread then runs no further code. A task still runs its `finally` blocks.
        """
        if not self._counted(AT_POINT, process.name):
            return
        thread = getcurrent()
        while thread.parent is not None:
            thread.parent.switch()
        raise Killed

    def decides(self, name: str) -> None:
        """Kills the program `name` before it sends a decision, if the plan requires it. Raises Killed."""
        if self._counted(AT_DECISION, name):
            raise Killed

    def called(self, process: SimulatedProcess, error: BaseException) -> None:
        """Raises `error` if the plan makes this call fail."""
        if self._counted(CALL_FAILS, process.name):
            self.errors.append(error)
            raise error

    def effects(self) -> Mapping[str, Effect]:
        """Returns the effect of each kind of fault, for a FaultInjector."""
        return {
            AT_POINT: partial(self._arm, text="dies at a crash point"),
            AT_DECISION: partial(self._arm, text="dies before it sends its decision"),
            CALL_FAILS: partial(self._arm, text="a call fails"),
        }

    def disarm(self) -> None:
        """Removes all faults that have not taken effect yet."""
        self._armed.clear()

    async def _arm(self, faults: FaultInjector, fault: PlannedEvent, text: str) -> None:
        def act() -> None:
            faults.has_fired(fault)
            faults.world.history.note(fault.where, "fault", text)
            if fault.what != CALL_FAILS:
                faults.program(fault).kill(fault.for_s)

        self._armed.setdefault((fault.what, fault.where), []).append(_ArmedFault(fault.whole("nth"), act))

    def _counted(self, kind: str, name: str) -> bool:
        """Counts one occurrence of the event for which the faults are armed. Returns whether a fault took effect."""
        self.kinds_without_place.discard(kind)
        armed, due = self._armed.get((kind, name), []), None
        for fault in armed:
            fault.left -= 1
            if fault.left <= 0 and due is None:
                due = fault
        if due is None:
            return False
        armed.remove(due)
        due.act()
        return True
