"""Runs the programs that generate load: our generator in Go (lab/benchmarks/load), and Apache's clients.

The generator is built when it is first used.
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from demo.processes import Processes, ProcessFailed

SOURCE = Path(__file__).resolve().parents[1] / "load"
PROGRAM = SOURCE.parents[2] / "data" / "benchmarks" / "bin" / "load"
_GRPC_SOURCE = SOURCE.parents[2] / "tests" / "foreign" / "clients" / "grpc" / "go" / "bench"
GRPC_PROGRAM = PROGRAM.with_name("grpc-load")
_WHERE_GO_INSTALLS_ITSELF = "/usr/local/go/bin"
_BUILD_TIMEOUT_S = 300
_RUN_TIMEOUT_S = 900
_JAVA_CLIENT = Path(__file__).resolve().parents[3] / "tests" / "foreign" / "clients" / "java" / "bench"
_JAVA_RUN_TIMEOUT_S = 600


class CannotBuild(Exception):
    """Raised if the generator cannot be built. The error message contains the reason and the remedy."""


def build(program: Path = PROGRAM, source: Path = SOURCE) -> Path:
    """Builds a generator and returns its path. Go does nothing if the source is unchanged. Raises CannotBuild."""
    go = find_go()
    if go is None:
        raise CannotBuild(
            f"Go not found. The load generator ({source.relative_to(SOURCE.parents[2])}) is written in Go. Install Go 1.19 or "
            "later (apt-get install golang-go, or https://go.dev/dl)"
            + (", or measure with Apache's Java client: make bench BENCH=--java" if source == SOURCE else "")
        )
    program.parent.mkdir(parents=True, exist_ok=True)
    command = [go, "build", "-buildvcs=false", "-o", str(program), "."]
    built = subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=_BUILD_TIMEOUT_S)
    if built.returncode != 0:
        raise CannotBuild(f"{go} could not build the load generator ({source}):\n{built.stderr.strip()}")
    return program


def find_go() -> str | None:
    """Returns the path of `go`, or None if it is not installed."""
    return shutil.which("go") or shutil.which("go", path=_WHERE_GO_INSTALLS_ITSELF)


def generate(
    processes: Processes,
    mode: str,
    addresses: Sequence[str],
    *,
    on_start: Callable[[int], None] = lambda pid: None,
    **options: object,
) -> dict[str, Any]:
    """Generates load on all brokers at the same time, with one generator per broker, and returns the combined results.

    The generator is lab/benchmarks/load. `on_start` is called with the process id of each generator. Options are passed to the
    generators: `in_flight=32` becomes `-in-flight 32`. Raises ProcessFailed.
    """
    generators = [
        processes.add(f"load-{number}", [str(PROGRAM), mode, "-broker", address, *_arguments(options)])
        for number, address in enumerate(addresses)
    ]
    for generator in generators:
        generator.spawn()
        on_start(generator.pid)
    for generator in generators:
        generator.wait(_RUN_TIMEOUT_S)
    return added([printed_json(f"the load generator ({mode})", generator.output()) for generator in generators])


def added(printed: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the combined output of several generators: the sums of rates and counts, and the maximum of each time.

    The measured time is the interval in which all generators ran. Their rate is steady if it is steady at each of them.
    """
    total = dict(printed[0])
    for each in printed[1:]:
        for name, value in each.items():
            match name:
                case "began_s" | "p50_ms" | "p99_ms" | "seconds":
                    total[name] = max(total[name], value)
                case "ended_s" | "is_steady":
                    total[name] = min(total[name], value)
                case "error":
                    total.setdefault(name, value)
                case _:
                    total[name] += value
    return total


def drive_java_client(
    processes: Processes, arguments: list[str], header: str, *, on_start: Callable[[int], None] = lambda pid: None
) -> dict[str, Any]:
    """Generates load on a broker with Apache's Java client. Returns the client's output. Raises ProcessFailed."""
    driver = processes.add("driver", [str(_JAVA_CLIENT), *arguments], environment={"ROCKETMQ_SERIALIZE_TYPE": header})
    driver.spawn()
    on_start(driver.pid)
    driver.wait(_JAVA_RUN_TIMEOUT_S)
    return printed_json("the Java client", driver.output())


def drive_grpc_client(
    processes: Processes, endpoint: str, mode: str, *, on_start: Callable[[int], None] = lambda pid: None, **options: object
) -> dict[str, Any]:
    """Generates load on a broker with Apache's gRPC client for Go. Returns the client's output.

    Options are passed to tests/foreign/clients/grpc/go/bench: `in_flight=32` becomes `-in-flight 32`. Raises CannotBuild
    or ProcessFailed.
    """
    build(GRPC_PROGRAM, _GRPC_SOURCE)
    driver = processes.add(
        "grpc-load",
        [str(GRPC_PROGRAM), endpoint, mode, *_arguments(options)],
        # The client writes its log into its home directory.
        environment={"HOME": str(GRPC_PROGRAM.parent)},
    )
    driver.spawn()
    on_start(driver.pid)
    driver.wait(_RUN_TIMEOUT_S)
    return printed_json("the gRPC client", driver.output())


def _arguments(options: Mapping[str, object]) -> list[str]:
    return [part for name, value in options.items() for part in (f"-{name.replace('_', '-')}", str(value))]


def printed_json(program: str, output: str) -> dict[str, Any]:
    """Returns the line of JSON in the output of a program that generates load. Raises ProcessFailed."""
    for line in output.splitlines():
        if line.startswith("{"):
            printed: dict[str, Any] = json.loads(line)
            return printed
    raise ProcessFailed(f"{program} printed no result:\n{output}")
