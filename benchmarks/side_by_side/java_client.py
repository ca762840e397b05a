"""The load driver that is Apache's own Java client: tests/conformance/java/bench."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.side_by_side.generator import printed_json
from demo.processes import Processes

BENCH = Path(__file__).resolve().parents[2] / "tests" / "conformance" / "java" / "bench"
_RUN_TIMEOUT_S = 600


def drive(
    processes: Processes, arguments: list[str], header: str, *, on_start: Callable[[int], None] = lambda pid: None
) -> dict[str, Any]:
    """What the driver printed. Raises ProcessFailed."""
    driver = processes.add("driver", [str(BENCH), *arguments], environment={"ROCKETMQ_SERIALIZE_TYPE": header})
    driver.spawn()
    on_start(driver.pid)
    driver.wait(_RUN_TIMEOUT_S)
    return printed_json("the Java client", driver.output())
