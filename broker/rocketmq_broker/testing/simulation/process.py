"""A process of the simulated operating system, with its threads and clocks, from its start to its end."""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from rocketmq_broker.client import NotRunning
from rocketmq_broker.remoting.network import Network, connect_by
from rocketmq_broker.testing.simulation.chance import stream
from rocketmq_broker.testing.simulation.history import History
from rocketmq_broker.testing.simulation.loop import NS_IN_S, OWNER, SimulatedLoop
from rocketmq_broker.testing.simulation.network.notes import Fired
from rocketmq_broker.testing.simulation.threads import SimulatedThreads
from rocketmq_broker.world import World, live_in

T = TypeVar("T")

_LATEST_START_S: Final = 0.002
"""The maximum delay in seconds before a new thread starts."""


class Killed(BaseException):
    """Raised in a process that was killed. None of the process's code runs afterwards."""


class WallClock:
    """The wall clock of one machine. The steady clock of a machine is the world's clock.

    Faults of the clock may overlap, and end separately. If several wrong rates are active, the latest one applies.
    """

    def __init__(self, loop: SimulatedLoop, starts_ms: int) -> None:
        """Creates a correct clock. `starts_ms` is the initial time of the world, in milliseconds since the epoch."""
        self._loop = loop
        self._starts_ns = starts_ms * 1_000_000
        self._shown_ns = self._starts_ns + loop.elapsed_ns()
        """The clock's time at `_since_ns`, without its jumps."""
        self._since_ns = loop.elapsed_ns()
        self._rate = 1.0
        self._leapt_ns = 0
        self._faults = 0
        self._leaps: dict[int, int] = {}
        """Maps the number of each active fault to the nanoseconds of its jump."""
        self._rates: dict[int, float] = {}
        self._unread: dict[int, Fired] = {}

    def now_ns(self) -> int:
        """Returns nanoseconds since the epoch."""
        if self._unread:
            unread, self._unread = self._unread, {}
            for fired in unread.values():
                fired()
        return self._leapt_ns + self._without_leaps_ns()

    def leap(self, seconds: float, fired: Fired | None = None) -> Callable[[], None]:
        """Sets the clock forward, or back if `seconds` is negative. Returns a function that undoes the jump.

        `fired` is called at the first read of the clock before the jump is undone.
        """
        number = self._new_fault(fired)
        self._leaps[number] = round(seconds * NS_IN_S)
        self._leapt_ns = sum(self._leaps.values())

        def leap_back() -> None:
            self._unread.pop(number, None)
            self._leaps.pop(number, None)
            self._leapt_ns = sum(self._leaps.values())

        return leap_back

    def run_at(self, rate: float, fired: Fired | None = None) -> Callable[[], None]:
        """Makes the clock run at `rate`. 1 is correct, and 0 stops the clock. Returns a function that ends the fault.

        After the last of these faults, the clock is correct again except for jumps. `fired` is called at the first read of the
        clock before the fault ends.
        """
        number = self._new_fault(fired)
        self._rates[number] = rate
        self._go_on_at(rate)

        def end() -> None:
            self._unread.pop(number, None)
            if self._rates.pop(number, None) is None:
                return
            if self._rates:
                self._go_on_at([*self._rates.values()][-1])
            else:
                self._run_right()

        return end

    def set_right(self) -> None:
        """Ends all faults of the clock, which restores the correct time and rate."""
        self._leaps.clear()
        self._rates.clear()
        self._unread.clear()
        self._leapt_ns = 0
        self._run_right()

    def _without_leaps_ns(self) -> int:
        return self._shown_ns + round((self._loop.elapsed_ns() - self._since_ns) * self._rate)

    def _new_fault(self, fired: Fired | None) -> int:
        self._faults += 1
        if fired is not None:
            self._unread[self._faults] = fired
        return self._faults

    def _go_on_at(self, rate: float) -> None:
        self._shown_ns, self._since_ns, self._rate = self._without_leaps_ns(), self._loop.elapsed_ns(), rate

    def _run_right(self) -> None:
        self._shown_ns, self._since_ns, self._rate = self._starts_ns, 0, 1.0


class SimulatedProcess:
    """One run of a program, from its start until it is killed. Each restart creates a new object."""

    def __init__(
        self,
        name: str,
        address: str,
        *,
        loop: SimulatedLoop,
        history: History,
        seed: int,
        number: int,
        clock: WallClock,
        network: Callable[["SimulatedProcess"], Network],
    ) -> None:
        """Creates a process. `number` is unique for each start. `network` returns the network for this process."""
        self.name = name
        self.address = address
        self.clock = clock
        self.is_alive = True
        self.is_running = True
        self._loop = loop
        self._history = history
        self._kept: list[asyncio.Handle] = []
        self._at_death: list[Callable[[], object]] = []
        self._remains: list[object] = []
        self.context = contextvars.copy_context()
        """The context of the process. All its code runs in copies of it."""
        self.chance = stream(seed, "process", name, number)
        self.threads = SimulatedThreads(loop, self.context, self.chance, _LATEST_START_S)
        self.world = World(
            wall_ns=clock.now_ns,
            steady_ns=loop.steady_ns,
            sleep=self.threads.sleep,
            random=self.chance,
            process_id=lambda: 4000 + number,
            nonce=self.chance.randbytes,
            host_name=lambda: name,
            local_address=lambda: address,
            watch=self.threads,
            run_function=self.threads.run,
            acquire=self.threads.acquire,
            run_coroutine=self.run_and_wait,
        )
        self.context.run(self._enter, network(self))

    def _enter(self, network: Network) -> None:
        OWNER.set(self)
        live_in(self.world)
        connect_by(network)

    # work

    def run(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Runs a coroutine in the process."""
        return self._loop.create_task(work, context=self.context.copy())

    def run_and_wait(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Runs a coroutine for a thread of the process, and returns its result. Raises the coroutine's error, or CannotWaitHere.

        After `timeout_s` it cancels the coroutine and raises TimeoutError. Raises NotRunning if the coroutine was cancelled.
        """
        if not self.is_alive:
            work.close()
            raise GeneratorExit  # a generator of a dead process is being collected: nothing of it may run
        task = self.run(work)
        self.threads.wait_for(asyncio.wait([task], timeout=timeout_s))
        if not task.done():
            task.cancel()
            raise TimeoutError(f"no result within {timeout_s:g} s: the coroutine was cancelled")
        if task.cancelled():
            raise NotRunning("the coroutine was cancelled")
        return task.result()

    def start_thread(self, function: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        """Runs a function in a thread of the process. The function may block in the world's `sleep` and in `threads.wait_for`."""
        return self.threads.start(function, *args)

    def call(self, function: Callable[..., T], *args: Any) -> T:
        """Calls a function that does not block, in the context of the process."""
        return self.context.copy().run(function, *args)

    # end

    def on_death(self, callback: Callable[[], object]) -> None:
        """Adds a callback that is called when the process is killed, to end its connections, files and sessions."""
        self._at_death.append(callback)

    def kill(self) -> None:
        """Ends the process like kill -9. None of its code runs afterwards, not even `finally` blocks."""
        if not self.is_alive:
            return
        self.is_alive = self.is_running = False
        self._history.note(self.name, "death", f"{self.name} dies")
        # Keeps references to waiting tasks: collecting an unreferenced coroutine would run its `finally`.
        self._remains.append(asyncio.all_tasks(self._loop))
        for callback in self._at_death:
            callback()

    def freeze(self) -> None:
        """Stops the process like SIGSTOP."""
        if self.is_running:
            self.is_running = False
            self._history.note(self.name, "fault", f"{self.name} is stopped")

    @property
    def has_missed_work(self) -> bool:
        """True if callbacks were due while the process was stopped."""
        return bool(self._kept)

    def thaw(self) -> None:
        """Resumes the process like SIGCONT."""
        if self.is_alive and not self.is_running:
            self.is_running = True
            self._history.note(self.name, "fault", f"{self.name} continues")
            kept, self._kept = self._kept, []
            self._loop.give_back(kept)

    def clear(self) -> None:
        """Ends the remaining threads after the world's end."""
        self.is_running = self.is_alive = False
        self.threads.clear()

    def keep(self, handle: asyncio.Handle) -> None:
        """Keeps a callback that is due while the process is stopped or after it has ended."""
        (self._kept if self.is_alive else self._remains).append(handle)
