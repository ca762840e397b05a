"""The ends of programs that are told to stop at any moment of their start: `python -m benchmarks.stops --starts 200 --seed 7`.

A third of the signals comes in the instant in which the program says that it is ready, the others at a moment between its start
and a little later; SIGTERM and SIGINT in turn. The seed chooses the moments. Exit code 1 if a program did not end as it should.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from demo.ports import free_ports
from demo.processes import Process, Processes, ProcessFailed, accepts_connections, prints
from demo.system import BROKER_SETTINGS, System, redis_command
from rocketmq_broker.told_to_stop import until_interrupted

_ENDS_WITHIN_S: Final = 60.0
_LOOK_EVERY_S: Final = 0.001
_BEYOND_READY: Final = 1.1
_INSTANTS_S: Final = 0.02
_CHECKOUT: Final = str(Path(__file__).parents[1])
_FIRST_LINE: Final = re.compile(rf'File "{_CHECKOUT}/(?!\S*(__main__|told_to_stop)\.py)')
"""A traceback without a match comes from Python's own start, or from what a program imports so that signals end it quietly."""
PROGRAMS: Final = (
    "name_server", "broker", "console", "order_service", "credit_service", "inventory_service", "credit_worker", "up",
)  # fmt: skip
"""All that run until they are told to stop. The broker runs with its exporter."""


@dataclass(slots=True)
class Ends:
    """The outcomes of one program's starts."""

    program: str
    starts: int = 0
    in_order: int = 0
    """Exit code 0."""
    before_python: int = 0
    """Ended by the signal before the program's first line: nothing was begun. SIGINT shows a traceback of Python's own start."""
    tracebacks: int = 0
    left_behind: int = 0
    """Starts of which a process ran on."""
    wrong: list[str] = field(default_factory=list)
    """The others, with what they printed."""


def stop_at_any_moment(processes: Processes, home: Path, program: str, starts: int, random: random.Random) -> Ends:
    """Starts the program so often, and stops it at moments that `random` chooses. Raises ProcessFailed if it cannot start."""
    process, ready = _added(processes, home, program)
    process.start()
    process.stop()
    ready_s = _time_to_ready(process, ready)
    ends = Ends(program)
    for number in range(starts):
        is_instant = number % 3 == 2
        delay_s = random.random() * (_INSTANTS_S if is_instant else ready_s * _BEYOND_READY)
        told = (signal.SIGTERM, signal.SIGINT)[number // 3 % 2]
        process.spawn()
        if is_instant:
            _until_ready(process, ready)
        time.sleep(delay_s)
        _tell(process, told)
        moment = f"{told.name} {delay_s:.4f} s after {'it was ready' if is_instant else 'its start'}"
        _judge(ends, process, told, moment)
    return ends


def table(all_ends: Sequence[Ends]) -> str:
    """Returns a table with a line for each program."""
    lines = ["| program | starts | exit 0 | killed before its first line | tracebacks | processes left behind | other |"]
    lines.append("| --- | --- | --- | --- | --- | --- | --- |")
    for ends in all_ends:
        values = ends.program, ends.starts, ends.in_order, ends.before_python, ends.tracebacks, ends.left_behind, len(ends.wrong)
        lines.append("| " + " | ".join(map(str, values)) + " |")
    return "\n".join(lines)


def _judge(ends: Ends, process: Process, told: signal.Signals, moment: str) -> None:
    ends.starts += 1
    group = process.pid
    try:
        code = process.wait(_ENDS_WITHIN_S)
    except ProcessFailed as error:
        ends.wrong.append(f"{moment}: {error}")
        process.stop(0)
        return
    output = process.output()
    has_traceback = "Traceback" in output
    if not _ends_soon(group):
        ends.left_behind += 1
    if code == 0 and not has_traceback:
        ends.in_order += 1
    elif (code == -told and not output.strip()) or (told is signal.SIGINT and has_traceback and not _FIRST_LINE.search(output)):
        ends.before_python += 1
    else:
        ends.tracebacks += has_traceback
        ends.wrong.append(f"{moment}: exit code {code}\n{output}")


def _tell(process: Process, told: signal.Signals) -> None:
    """Sends SIGINT to the whole group, as Ctrl-C does; or SIGTERM to the process, as orchestrators do."""
    with contextlib.suppress(ProcessLookupError):  # it has ended itself; its exit code is judged later
        if told is signal.SIGINT:
            os.killpg(process.pid, told)
        else:
            os.kill(process.pid, told)


def _ends_soon(group: int) -> bool:
    """Returns whether all processes of the group end soon."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def _until_ready(process: Process, ready: str) -> None:
    while process.is_running and ready not in process.output():
        time.sleep(_LOOK_EVERY_S)


def _time_to_ready(process: Process, ready: str) -> float:
    begun_s = time.monotonic()
    process.spawn()
    _until_ready(process, ready)
    taken_s = time.monotonic() - begun_s
    process.stop()
    return taken_s


def _added(processes: Processes, home: Path, program: str) -> tuple[Process, str]:
    """Adds the program, and returns it with the text that it prints when ready."""
    command, environment, ready = _how_to_start(home, program)
    added = processes.add(f"{program} under test", command, environment=environment, is_ready=prints(ready))
    return added, ready


def _how_to_start(home: Path, program: str) -> tuple[list[str], Mapping[str, str], str]:
    folder = home / program
    folder.mkdir(parents=True)
    ports = free_ports(4)
    python = [sys.executable, "-m"]
    services = {
        "NAMESRV_ADDR": (home / "name server").read_text(),
        "REDIS_URL": (home / "redis").read_text(),
        "ORDER_DATABASE_URL": f"sqlite:///{folder}/orders.db",
        "CREDIT_DATABASE_URL": f"sqlite:///{folder}/credits.db",
        "INVENTORY_DATABASE_URL": f"sqlite:///{folder}/inventory.db",
        "ORDER_HTTP_PORT": "0",
        "CREDIT_HTTP_PORT": "0",
        "INVENTORY_HTTP_PORT": "0",
    }
    if program == "name_server":
        return (
            [*python, "rocketmq_broker.nameserver", "-p", str(ports[0]), "--kv-config", str(folder / "kv.json")],
            {},
            "boot success",
        )
    if program == "broker":
        settings = {
            **BROKER_SETTINGS,
            "storePathRootDir": str(folder / "store"),
            "listenPort": str(ports[0]),
            "namesrvListenPort": str(ports[1]),
            "metricsExporterType": "PROM",
            "metricsPromExporterPort": str(ports[2]),
        }
        configuration = folder / "broker.conf"
        configuration.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return [*python, "rocketmq_broker", "-c", str(configuration)], {}, "boot success"
    if program == "console":
        return [*python, "rocketmq_broker.admin", "console", "--listen", "127.0.0.1:0"], services, "console: http"
    if program == "up":
        zeros = [f"--{name}-port=0" for name in ("order", "credit", "inventory", "redis")]
        own = ["--port=0", *zeros, "--namesrv-port=0", "--broker-port=0", "--data", str(folder)]
        return [*python, "demo.up", *own], {}, "http://127.0.0.1"
    if program == "credit_worker":
        return [*python, "credit_service.worker"], services, "worker ready"
    return [*python, program], services, " ready: "


def run(programs: Sequence[str], starts: int, seed: int, home: Path) -> list[Ends]:
    """Returns the outcomes of these programs, beside a running broker and Redis. Raises ProcessFailed."""
    with Processes(home / "logs") as processes:
        system = System(processes, home / "system")
        (redis_port,) = free_ports(1)
        redis = processes.add("redis", redis_command(redis_port, home), is_ready=accepts_connections(redis_port))
        system.broker.start()
        redis.start()
        (home / "name server").write_text(system.namesrv_addr)
        (home / "redis").write_text(f"redis://127.0.0.1:{redis_port}/0")
        chance = random.Random(seed)
        return [stop_at_any_moment(processes, home, program, starts, chance) for program in programs]


def main() -> int:
    """Returns 1 if a program did not end as it should, else 0."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--starts", type=int, default=200, help="how often each program is started")
    arguments.add_argument("--seed", type=int, default=7, help="chooses the moments")
    arguments.add_argument("programs", nargs="*", default=PROGRAMS, help=f"of {', '.join(PROGRAMS)}; all unless given")
    wanted = arguments.parse_args()
    # A shell starts what it puts in the background with SIGINT ignored, and the programs would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as home:
        all_ends = run(wanted.programs, wanted.starts, wanted.seed, Path(home))
    for ends in all_ends:
        for wrong in ends.wrong:
            print(f"{ends.program}: {wrong}\n", file=sys.stderr)
    print(table(all_ends))
    return 1 if any(ends.wrong or ends.left_behind for ends in all_ends) else 0


if __name__ == "__main__":
    with until_interrupted("Stopped: not all ways to stop were measured."):
        sys.exit(main())
