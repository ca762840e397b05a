"""Simulates a world of machines and the programs that run on them."""

import asyncio
import contextvars
import gc
import traceback
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final, TypeVar

from rocketmq_broker.testing.simulation.chance import stream
from rocketmq_broker.testing.simulation.disk import SimulatedDisk
from rocketmq_broker.testing.simulation.history import History
from rocketmq_broker.testing.simulation.loop import SimulatedLoop
from rocketmq_broker.testing.simulation.network import SimulatedNetwork
from rocketmq_broker.testing.simulation.process import Killed, SimulatedProcess, WallClock
from rocketmq_broker.world import Chance

T = TypeVar("T")
P = TypeVar("P", bound="Program")

STARTS_MS: Final = 1_767_225_600_000
"""The initial time of each world: 2026-01-01T00:00:00Z in milliseconds since the epoch."""
_START_AGAIN_S: Final = (1.0, 5.0)
"""The range of the delay in seconds before a program is restarted after a failed start."""

Begin = Callable[[SimulatedProcess], Coroutine[Any, Any, Any]]
"""A coroutine function that starts a program in a new process. The program is ready when it returns."""


class SimulatedMachine:
    """A machine with a clock, a disk and an address, which it keeps when its processes end."""

    def __init__(self, world: "SimulatedWorld", name: str, address: str) -> None:
        """Creates a machine. Tests call `SimulatedWorld.machine` instead."""
        self.name = name
        self.address = address
        self.clock = WallClock(world.loop, STARTS_MS)
        self.disk = SimulatedDisk(name, world.history, world.chance("disk", name))


class Program:
    """A program that is restarted whenever its process ends, like a supervised process."""

    def __init__(self, world: "SimulatedWorld", name: str, machine: SimulatedMachine, begin: Begin) -> None:
        """Creates a program that is not started. Tests call `SimulatedWorld.program` instead."""
        self.name = name
        self.machine = machine
        self._world = world
        self._begin = begin
        self._chance = world.chance("supervisor", name)
        self._starts = 0
        self.process: SimulatedProcess | None = None
        """The program's process; None while it is down."""
        self.is_ready = asyncio.Event()
        """An asyncio event that is set while the program is ready."""
        self.on_ready: list[Callable[[], object]] = []
        """Callbacks that are called each time the program becomes ready."""

    def begin(self) -> None:
        """Starts the program, unless it is running or the world has ended."""
        if self.process is not None or self._world.is_over:
            return
        self._starts += 1
        process = self.process = self._world.new_process(self.name, self.machine, self._starts)
        self._world.history.note(self.name, "start", f"{self.name} starts")
        self._world.loop.create_task(self._watch(process))

    async def start(self) -> None:
        """Starts the program, and returns when it is ready."""
        self.begin()
        await self.is_ready.wait()

    def kill(self, down_s: float = 0.0, *, is_power: bool = False) -> None:
        """Kills the program, by SIGKILL or by a power failure of its machine. Restarts it after at least `down_s` seconds."""
        process = self.process
        if process is None:
            return
        self.process = None
        self.is_ready.clear()
        self._world.network.died(process, is_power=is_power)
        process.kill()
        if is_power:
            self.machine.disk.lose_power()
        else:
            self.machine.disk.kill()
        self._world.later(down_s + self._chance.uniform(0.1, 1.0), self.begin)

    async def _watch(self, process: SimulatedProcess) -> None:
        try:
            await process.run(self._begin(process))
        except Exception as error:
            if self.process is process:
                self._world.history.note(self.name, "start", f"{self.name} ends: {error}")
                self.kill(self._chance.uniform(*_START_AGAIN_S))
            return
        if self.process is process and process.is_alive:
            self.is_ready.set()
            for callback in self.on_ready:
                callback()


class SimulatedWorld:
    """One simulated run, created from a seed. Everything runs on one event loop. Call `run` once, or `play` and then `end`."""

    def __init__(self, seed: int) -> None:
        """Creates a world. `seed` determines everything that a plan does not define."""
        self.seed = seed
        self.loop = SimulatedLoop()
        self.history = History(self.loop.elapsed_ns)
        self.network = SimulatedNetwork(self.history, lambda link: self.chance("link", link))
        self.machines: dict[str, SimulatedMachine] = {}
        self.programs: dict[str, Program] = {}
        self.is_over = False
        self.errors: list[str] = []
        """The unhandled errors. In a real process each would print a traceback."""
        self.loop.on_error = self._note_error
        self._processes: list[SimulatedProcess] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        """The tasks that wait between `play` and `end`. Collecting an unreferenced task would run its `finally`."""
        self._context = contextvars.copy_context()

    def chance(self, *names: str | int) -> Chance:
        """Returns the random stream for these names."""
        return stream(self.seed, *names)

    def later(self, seconds: float, callback: Callable[[], object]) -> None:
        """Calls `callback` after `seconds`, even if the calling process has ended."""
        self.loop.call_later(seconds, callback, context=self._context.copy())

    @property
    def elapsed_s(self) -> float:
        """The seconds since the world began."""
        return self.loop.elapsed_ns() / 1e9

    @property
    def names(self) -> dict[str, str]:
        """The names of the machines, by their addresses."""
        return {machine.address: name for name, machine in self.machines.items()}

    def machine(self, name: str) -> SimulatedMachine:
        """Adds a machine."""
        machine = self.machines[name] = SimulatedMachine(self, name, f"10.0.0.{len(self.machines) + 1}")
        return machine

    def program(self, name: str, machine: SimulatedMachine, begin: Begin) -> Program:
        """Adds a program without starting it."""
        return self.add(Program(self, name, machine, begin))

    def add(self, program: P) -> P:
        """Adds a program of a subclass of Program without starting it."""
        self.programs[program.name] = program
        return program

    def new_process(self, name: str, machine: SimulatedMachine, start: int) -> SimulatedProcess:
        """Returns a new process in which no code runs yet. `start` is the number of the program's start."""
        process = SimulatedProcess(
            name, machine.address, loop=self.loop, history=self.history, seed=self.seed, number=len(self._processes) + 1,
            clock=machine.clock, network=self.network.at,
        )  # fmt: skip
        self._processes.append(process)
        return process

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs the world until `work` returns, then ends it. Raises NothingLeft."""
        try:
            return self.play(work)
        finally:
            self.end()

    def play(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs the world until `work` returns, and keeps its state. Call `end` later. Raises NothingLeft."""
        was_collecting = gc.isenabled()
        gc.disable()
        asyncio.set_event_loop(self.loop)
        try:
            return self.loop.run_until_complete(work)
        finally:
            asyncio.set_event_loop(None)
            self._tasks = asyncio.all_tasks(self.loop)
            if was_collecting:
                gc.enable()

    def end(self) -> None:
        """Ends all processes and closes the event loop."""
        self.is_over = True
        self.loop.on_error = lambda context: None
        for process in self._processes:
            process.clear()
        self.loop.clear()
        self._tasks.clear()
        asyncio.set_event_loop(None)

    def do(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[None]:
        """Runs a coroutine of the world itself, outside of all processes. Records its error in `errors`."""
        return self.loop.create_task(self._done(work), context=self._context.copy())

    async def _done(self, work: Coroutine[Any, Any, Any]) -> None:
        try:
            await work
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            self._note_error({"exception": error, "message": f"{place.name} in {Path(place.filename).name}:{place.lineno}"})

    def _note_error(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, Killed):
            return
        text = f"{context.get('message')}: {type(error).__name__}: {error}" if error is not None else str(context.get("message"))
        self.errors.append(text)
        self.history.note("world", "error", text)
