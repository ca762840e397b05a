"""The result of one run of a load on one broker."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.benchmarks.side_by_side.plan import Kind

BUSY_FROM = 0.1
"""The number of CPUs used by other programs above which the machine counts as busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Others:
    """The CPU usage of other programs during the run."""

    load_before: float
    """The machine's load average (1 minute) when the run began."""
    load_after: float = 0.0
    """The load average (1 minute) when the run ended. It includes the broker and the program that generated the load."""
    processors: float = 0.0
    """The average number of CPUs that other programs used."""
    programs: str = ""
    """The names of the other programs that used the most CPU time."""

    @property
    def is_busy(self) -> bool:
        """True if other programs may have changed the result."""
        return self.processors > BUSY_FROM


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The result of one run. A value is None if it does not apply to this kind of load."""

    result: float
    """The measured value, in the unit of the load."""
    start_s: float
    """The seconds from the start of the broker's process to the first accepted message."""
    others: Others
    warm_up_s: float | None = None
    """The seconds of load before the row, or before the first of the rows that share a process."""
    is_steady: bool = True
    """False if that load ended at its maximum, before its rate was steady."""
    p50_ms: float | None = None
    p99_ms: float | None = None
    cpu_us: float | None = None
    """The CPU time per message in microseconds, used by the broker's process and its children."""
    peak_mib: float | None = None
    dropped: int = 0
    """The number of messages that the broker accepted but that did not become visible or did not arrive."""
    doubled: int = 0
    errors: int = 0
    error: str = ""
    """The first error, or an empty string if there was none."""
    messages: int = 0
    """The number of all messages that the broker accepted."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The CPU time and memory of the processes during the load."""

    broker_cpu_s: float
    peak_mib: float
    others: Others


def generated_sample(kind: Kind, printed: Mapping[str, Any], seen: Seen, start_s: float) -> Sample:
    """Returns a sample with the values from the generator's output (lab/benchmarks/load)."""
    result = {
        Kind.PULLS: "mb_per_s",
        Kind.LISTENER: "p99_ms",
        Kind.CHECKS: "seconds",
    }.get(kind, "per_s")
    items = printed["items"]
    return Sample(
        result=printed[result],
        start_s=start_s,
        others=seen.others,
        p50_ms=printed.get("p50_ms"),
        p99_ms=printed.get("p99_ms"),
        cpu_us=seen.broker_cpu_s / items * 1e6 if items else None,
        peak_mib=seen.peak_mib,
        dropped=printed["taken"] - printed["visible"] if "taken" in printed else printed["missing"],
        doubled=printed.get("doubled", 0),
        errors=printed.get("errors", 0),
        error=printed.get("error", ""),
        messages=printed.get("taken", items),
    )


def java_sample(kind: Kind, printed: Mapping[str, Any], seen: Seen, start_s: float) -> Sample:
    """Returns a sample with the values from the Java client's output.

    The CPU time includes the warm-up, because the client does not report the end of its warm-up.
    """
    if kind is Kind.JAVA_CONSUMER:
        committed, dropped, doubled = printed["n"], printed["lost"], printed["duplicates"]
        result = printed["msg_per_s"]
    else:
        committed, dropped, doubled = printed["committed_total"], printed["sent_total"] - printed["committed_total"], 0
        result = printed["tx_per_s"] * committed / printed["sent_total"]
    return Sample(
        result=result,
        start_s=start_s,
        others=seen.others,
        p50_ms=printed["p50_ms"],
        p99_ms=printed["p99_ms"],
        cpu_us=seen.broker_cpu_s / committed * 1e6 if committed else None,
        peak_mib=seen.peak_mib,
        dropped=dropped,
        doubled=doubled,
        errors=printed["failures"],
        messages=printed.get("sent_total", committed),
    )
