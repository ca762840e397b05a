"""Places orders over HTTP with a load generator (lab/benchmarks/orders/load, in Go).

The generator records the time of each response.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from demo.processes import ProcessFailed
from lab.benchmarks.side_by_side.generator import PROGRAM, build, printed_json

_SOURCE: Final = Path(__file__).resolve().parent / "load"
_PROGRAM: Final = PROGRAM.with_name("order-load")
_ANSWER_TIMEOUT_S: Final = 60.0
"""The time in seconds that the generator may run after the end of the load. Answers arrive within 30 s."""


@dataclass(frozen=True, slots=True)
class PlacedOrder:
    """An order that the service accepted with status 201. Times are in seconds since the epoch."""

    order_id: str
    began_s: float
    answered_s: float


@dataclass(frozen=True, slots=True)
class Placing:
    """The result of one run of the load generator."""

    orders: list[PlacedOrder]
    refused: int
    """The number of requests that were not answered, or answered with a status other than 201."""
    seconds: float


def build_generator() -> None:
    """Builds the generator, unless it is already built. Raises CannotBuild."""
    build(_PROGRAM, _SOURCE)


def place_at_rate(url: str, *, rate: float, seconds: float) -> Placing:
    """Starts `rate` orders per second for `seconds`, without waiting for responses (open loop). Raises ProcessFailed."""
    return _place(url, "-rate", rate, seconds)


def place_in_flight(url: str, *, in_flight: int, seconds: float) -> Placing:
    """Keeps the number of unanswered requests at `in_flight` for `seconds` (closed loop). Raises ProcessFailed."""
    return _place(url, "-in-flight", in_flight, seconds)


def _place(url: str, option: str, value: float, seconds: float) -> Placing:
    command = [str(_PROGRAM), "-url", url, option, f"{value:g}", "-seconds", f"{seconds:g}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + _ANSWER_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise ProcessFailed(f"the load generator did not end within {error.timeout:g} s") from None
    if done.returncode != 0:
        raise ProcessFailed(f"the load generator failed: {done.stderr.strip()}")
    printed = printed_json("the load generator", done.stdout)
    return Placing([PlacedOrder(**order) for order in printed["orders"]], printed["refused"], printed["seconds"])
