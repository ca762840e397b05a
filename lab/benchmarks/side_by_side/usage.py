"""Measures the resource usage of a broker and of other programs."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import psutil

_READ_EVERY_S = 0.25
_READINGS_FOR_ONE_OF_MEMORY = 4
"""The number of CPU readings for each reading of the memory.

The memory is read less often, because reading the PSS can stop a process for some milliseconds.
"""
_MEBIBYTE = 1024 * 1024
_NAMED_PROGRAMS = 3


@dataclass(frozen=True, slots=True)
class Reading:
    """A reading of the CPU time used so far, in seconds. `at_s` is the time of the reading, in seconds since the epoch."""

    at_s: float
    broker_s: float
    """The CPU time of the broker's process and its children."""
    bench_s: float
    """The CPU time of this program and of the programs that generate load."""
    machine_s: float
    """The CPU time of all programs on this machine, and of other guests on its host."""


@dataclass(frozen=True, slots=True)
class Used:
    """The CPU time used between two readings, in seconds."""

    broker_s: float
    others_s: float
    """The CPU time of programs that do not belong to the benchmark."""


def born_s(process: psutil.Process) -> float:
    """Returns the start time of a process in seconds since the epoch, to a hundredth of a second.

    Linux records the start time relative to the boot. psutil adds the boot time in whole seconds, so its result may be off by a
    second.
    """
    boot_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return boot_s + float(process.create_time()) - float(psutil.boot_time())


def used(readings: Sequence[Reading], began_s: float, ended_s: float) -> Used:
    """Returns the usage between two times, interpolated between readings. `readings` must not be empty."""
    began, ended = _at(readings, began_s), _at(readings, ended_s)
    broker_s, bench_s = ended.broker_s - began.broker_s, ended.bench_s - began.bench_s
    return Used(broker_s, max(0.0, ended.machine_s - began.machine_s - broker_s - bench_s))


def _at(readings: Sequence[Reading], at_s: float) -> Reading:
    later = next((number for number, reading in enumerate(readings) if reading.at_s >= at_s), len(readings))
    if later in (0, len(readings)):
        return readings[0 if later == 0 else -1]
    before, after = readings[later - 1], readings[later]
    share = (at_s - before.at_s) / (after.at_s - before.at_s)

    def between(low: float, high: float) -> float:
        return low + share * (high - low)

    return Reading(
        at_s,
        between(before.broker_s, after.broker_s),
        between(before.bench_s, after.bench_s),
        between(before.machine_s, after.machine_s),
    )


class Watch:
    """A thread that reads the usage at intervals."""

    def __init__(self, *brokers: psutil.Process) -> None:
        """Creates the thread without starting it. `brokers` are the brokers' processes. Their current children are included.

        Pass no process if no broker has started yet.
        """
        self.peak_mib = 0.0
        """The peak memory in MiB, measured as PSS. PSS divides shared memory among the processes that use it."""
        self.readings: list[Reading] = []
        self._broker = [process for broker in brokers for process in (broker, *broker.children(recursive=True))]
        self._bench = [psutil.Process()]
        self._before = _cpu_of_programs()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._read_until_over, daemon=True)

    def add_driver(self, pid: int) -> None:
        """Adds a program of the benchmark, such as one that generates load.

        The program's usage since its start is counted as the benchmark's.
        """
        self._bench.append(psutil.Process(pid))

    def start(self) -> None:
        """Starts reading."""
        self._read()
        self._thread.start()

    def stop(self) -> None:
        """Stops reading."""
        self._is_over.set()
        self._thread.join()
        self._read()

    def other_programs(self) -> list[tuple[str, float]]:
        """Returns the names of other programs, and their CPU time in seconds since the start, in descending order of time."""
        own = {process.pid for process in (*self._broker, *self._bench)}
        return top_programs(self._before, _cpu_of_programs(), own)

    def _read_until_over(self) -> None:
        count = 0
        while not self._is_over.wait(_READ_EVERY_S):
            self._read()
            if count % _READINGS_FOR_ONE_OF_MEMORY == 0:
                self.peak_mib = max(self.peak_mib, sum(map(_memory_mib, self._broker)))
            count += 1

    def _read(self) -> None:
        machine = psutil.cpu_times()
        busy_s = machine.user + machine.nice + machine.system + machine.irq + machine.softirq + machine.steal
        self.readings.append(Reading(time.time(), sum(map(used_cpu_s, self._broker)), sum(map(used_cpu_s, self._bench)), busy_s))


@contextmanager
def watching(*brokers: psutil.Process) -> Iterator[Watch]:
    """Reads the usage during the block, and yields the reader."""
    watch = Watch(*brokers)
    watch.start()
    try:
        yield watch
    finally:
        watch.stop()


def load_average() -> float:
    """Returns the machine's load average of the last minute."""
    return os.getloadavg()[0]


Programs = dict[int, tuple[str, float]]
"""Maps each process id to the name of its program and its CPU time in seconds."""


def top_programs(before: Programs, after: Programs, own: set[int]) -> list[tuple[str, float]]:
    """Returns the names of programs and their CPU seconds between two readings, in descending order of seconds.

    The processes with the ids in `own` are omitted.
    """
    grown: dict[str, float] = {}
    for pid, (name, cpu_s) in after.items():
        if pid not in own:
            grown[name] = grown.get(name, 0.0) + cpu_s - before.get(pid, (name, 0.0))[1]
    return sorted(grown.items(), key=lambda program: -program[1])[:_NAMED_PROGRAMS]


def _cpu_of_programs() -> Programs:
    return {
        process.pid: (process.info["name"], process.info["cpu_times"].user + process.info["cpu_times"].system)
        for process in psutil.process_iter(["name", "cpu_times"])
        if process.info["cpu_times"] is not None
    }


def used_cpu_s(process: psutil.Process) -> float:
    """Returns the CPU time in seconds of a process and of its children that have ended."""
    with contextlib.suppress(psutil.NoSuchProcess):
        times = process.cpu_times()
        return float(times.user + times.system + times.children_user + times.children_system)
    return 0.0


def _memory_mib(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        return float(process.memory_full_info().pss / _MEBIBYTE)
    return 0.0
