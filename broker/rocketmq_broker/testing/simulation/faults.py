"""Injects the faults of a simulated world: faults of processes, machines, links, clocks and disks."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final

from rocketmq_broker.testing.simulation.plan import PlannedEvent, UnreadablePlan
from rocketmq_broker.testing.simulation.process import Killed
from rocketmq_broker.testing.simulation.world import Program, SimulatedWorld

Effect = Callable[["FaultInjector", PlannedEvent], Awaitable[None]]
"""A coroutine function that begins a fault, waits for its end, and removes its effect."""


class FaultInjector:
    """Injects the faults of a plan, and counts those that had an effect."""

    def __init__(self, world: SimulatedWorld, effects: Mapping[str, Effect]) -> None:
        """Creates an injector. `effects` maps each kind of fault to its effect."""
        self.world = world
        self._effects = effects
        self.fired: Counter[str] = Counter()
        """The number of planned faults of each kind that affected or killed a process."""
        self._running: dict[asyncio.Task[None], None] = {}

    def schedule(self, fault: PlannedEvent) -> None:
        """Schedules a fault at its time."""
        self.world.loop.call_later(fault.at_s, self._begin, fault)

    async def stop(self) -> None:
        """Ends all active faults."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def program(self, fault: PlannedEvent) -> Program:
        """Returns the fault's target. Raises UnreadablePlan if the world has no program with that name."""
        if (program := self.world.programs.get(fault.where)) is None:
            names = ", ".join(self.world.programs)
            raise UnreadablePlan(f"{fault.what} at {fault.at_s:g} s has an unknown target {fault.where}: must be one of {names}")
        return program

    def has_fired(self, fault: PlannedEvent) -> None:
        """Records that this fault had an effect."""
        self.fired[fault.what] += 1

    def once(self, fault: PlannedEvent) -> Callable[[], None]:
        """Returns a function that counts the fault when it is first called."""
        is_counted = False

        def fired() -> None:
            nonlocal is_counted
            if not is_counted:
                is_counted = True
                self.has_fired(fault)

        return fired

    def _begin(self, fault: PlannedEvent) -> None:
        self.world.history.note(fault.where, "fault", _described(fault))
        task = self.world.do(self._inject(fault))
        self._running[task] = None

    async def _inject(self, fault: PlannedEvent) -> None:
        await self._effects[fault.what](self, fault)


def _described(fault: PlannedEvent) -> str:
    details = ", ".join(f"{name} {value}" for name, value in sorted(fault.parameters.items()))
    lasts = f" for {fault.for_s:g} s" if fault.for_s else ""
    return f"{fault.what}{lasts}{f' ({details})' if details else ''}"


async def _lasts(fault: PlannedEvent, end: Callable[[], object]) -> None:
    """Waits until the fault ends, then calls `end`. A cancelled fault calls `end` immediately."""
    try:
        await asyncio.sleep(fault.for_s)
    finally:
        end()


# processes and machines


async def _kill(faults: FaultInjector, fault: PlannedEvent, *, is_power: bool = False) -> None:
    if faults.program(fault).process is not None:
        faults.has_fired(fault)
    faults.program(fault).kill(fault.for_s, is_power=is_power)


async def _kill_at_disk(faults: FaultInjector, fault: PlannedEvent) -> None:
    program = faults.program(fault)

    def die() -> None:
        faults.has_fired(fault)
        program.kill(fault.for_s)

    program.machine.disk.die_after(fault.whole("nth"), die)


async def _kill_at_frame(faults: FaultInjector, fault: PlannedEvent) -> None:
    program = faults.program(fault)
    is_after = fault.text("when") == "after"

    def die() -> None:
        faults.has_fired(fault)
        program.kill(fault.for_s)
        raise Killed

    if program.process is not None:
        faults.world.network.at_frame(program.name, fault.whole("nth"), die, is_after=is_after)


async def _freeze(faults: FaultInjector, fault: PlannedEvent) -> None:
    process = faults.program(fault).process
    if process is None:
        return
    faults.world.network.freeze(process.name)
    process.freeze()

    def thaw() -> None:
        if process.has_missed_work:
            faults.has_fired(fault)
        if process.is_alive:
            process.thaw()
            faults.world.network.thaw(process.name)

    await _lasts(fault, thaw)


# clocks


async def _leap(faults: FaultInjector, fault: PlannedEvent) -> None:
    clock = faults.program(fault).machine.clock
    await _lasts(fault, clock.leap(fault.number("by_s"), faults.once(fault)))


async def _rate(faults: FaultInjector, fault: PlannedEvent) -> None:
    clock = faults.program(fault).machine.clock
    rate = fault.number("rate") if "rate" in fault.parameters else 0.0
    await _lasts(fault, clock.run_at(rate, faults.once(fault)))


# links


def _link(fault: PlannedEvent) -> tuple[str, str]:
    sender, _, receiver = fault.where.partition(">")
    return sender, receiver


async def _cut(faults: FaultInjector, fault: PlannedEvent) -> None:
    if faults.world.network.cut(*_link(fault)):
        faults.has_fired(fault)


async def _cut_half_way(faults: FaultInjector, fault: PlannedEvent) -> None:
    faults.world.network.cut_half_way(
        *_link(fault), nth=fault.whole("nth") if "nth" in fault.parameters else 1, fired=faults.once(fault)
    )


async def _blocked(faults: FaultInjector, fault: PlannedEvent, links: list[tuple[str, str]]) -> None:
    fired = faults.once(fault)
    for link in links:
        faults.world.network.block(*link, fired=fired)

    def unblock() -> None:
        for link in links:
            faults.world.network.unblock(*link)

    await _lasts(fault, unblock)


async def _block(faults: FaultInjector, fault: PlannedEvent) -> None:
    await _blocked(faults, fault, [_link(fault)])


async def _partition(faults: FaultInjector, fault: PlannedEvent) -> None:
    sender, receiver = _link(fault)
    await _blocked(faults, fault, [(sender, receiver), (receiver, sender)])


async def _isolate(faults: FaultInjector, fault: PlannedEvent) -> None:
    others = [name for name in faults.world.programs if name != fault.where]
    await _blocked(faults, fault, [link for other in others for link in ((fault.where, other), (other, fault.where))])


async def _lose_frames(faults: FaultInjector, fault: PlannedEvent) -> None:
    faults.world.network.lose_frames(*_link(fault), fault.whole("count"), fired=faults.once(fault))


async def _slow(faults: FaultInjector, fault: PlannedEvent) -> None:
    network, link = faults.world.network, _link(fault)
    network.slow_down(*link, 0.0, fault.number("delay_s"), fired=faults.once(fault))
    await _lasts(fault, lambda: network.speed_up(*link))


async def _in_pieces(faults: FaultInjector, fault: PlannedEvent) -> None:
    network, link = faults.world.network, _link(fault)
    network.in_pieces(*link, True, fired=faults.once(fault))
    await _lasts(fault, lambda: network.in_pieces(*link, False))


# disks


async def _disk_full(faults: FaultInjector, fault: PlannedEvent) -> None:
    disk = faults.program(fault).machine.disk
    disk.fill(faults.once(fault))
    await _lasts(fault, disk.free)


async def _disk_slow(faults: FaultInjector, fault: PlannedEvent) -> None:
    disk = faults.program(fault).machine.disk
    disk.slow_down(0.0, fault.number("delay_s"), faults.once(fault))
    await _lasts(fault, disk.speed_up)


async def _disk_fails_writes(faults: FaultInjector, fault: PlannedEvent) -> None:
    faults.program(fault).machine.disk.fail_writes(fault.whole("count"), faults.once(fault))


async def _disk_fails_syncs(faults: FaultInjector, fault: PlannedEvent) -> None:
    faults.program(fault).machine.disk.fail_syncs(fault.whole("count"), faults.once(fault))


EFFECTS: Final[Mapping[str, Effect]] = {
    # The process is killed at `at_s`, or at its `nth` disk operation or sent frame after it, and restarts after `for_s`.
    "process.kill": _kill,
    "process.kill_at_disk": _kill_at_disk,
    "process.kill_at_frame": _kill_at_frame,  # `when` is "before" or "after" the frame
    "process.freeze": _freeze,  # pauses for `for_s`, and then continues
    "machine.power": partial(_kill, is_power=True),  # loses unsynced data too, which may be torn
    "outage": _kill,
    "member.old": _kill,
    # The wall clock jumps by `by_s` seconds, stops, or runs at `rate` times the right speed, and is right again after `for_s`.
    "clock.leap": _leap,
    "clock.stop": _rate,
    "clock.rate": _rate,
    "network.cut": _cut,  # breaks the connections; clients can reconnect immediately
    "network.cut_half_way": _cut_half_way,  # truncates the `nth` frame, and breaks its connection
    "network.block": _block,  # loses everything in one direction
    "network.partition": _partition,  # loses everything in both directions
    "network.isolate": _isolate,  # disconnects a process from all others
    "network.lose_frames": _lose_frames,  # loses the next `count` frames; connections remain open
    "network.slow": _slow,  # delays each frame by up to `delay_s`
    "network.in_pieces": _in_pieces,  # delivers single bytes
    "disk.full": _disk_full,
    "disk.slow": _disk_slow,  # each sync takes up to `delay_s` longer
    "disk.fail_writes": _disk_fails_writes,  # the next `count` writes
    "disk.fail_syncs": _disk_fails_syncs,  # the next `count` syncs
}
"""Maps the kinds of faults that exist in all worlds to their effects."""
