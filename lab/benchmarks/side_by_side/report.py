"""Writes the results as tables, as JSON and as Markdown."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.table import Table

from lab.benchmarks.side_by_side.brokers import Side
from lab.benchmarks.side_by_side.plan import Load
from lab.benchmarks.side_by_side.sample import BUSY_FROM, Sample
from lab.benchmarks.tables import tables_within

COLUMNS = (
    "load",
    "broker",
    "result (min, max)",
    "ratio",
    "wanted",
    "p50 ms",
    "p99 ms",
    "CPU µs",
    "MiB",
    "start s",
    "dropped",
)
BUSY_MARK = "!"
LESS_MEMORY = 8
"""The smallest ratio of Apache's memory use to ours that the project aims for."""
_UNKNOWN = ""


@dataclass(slots=True)
class Results:
    """All samples, keyed by load and broker."""

    environment: Mapping[str, str]
    samples: dict[tuple[Load, Side], list[Sample]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    """The runs without a sample, each with the reason."""

    def add(self, load: Load, side: Side, sample: Sample) -> None:
        """Adds a sample."""
        self.samples.setdefault((load, side), []).append(sample)

    def ratio(self, load: Load, side: Side = Side.OURS) -> float | None:
        """Returns the factor by which the median of `side` is better than Apache's. Returns None until both are measured."""
        if (load, side) not in self.samples or (load, Side.APACHE) not in self.samples:
            return None
        this, apache = (self._median(load, each, "result") for each in (side, Side.APACHE))
        better, worse = (apache, this) if load.is_less_better else (this, apache)
        return better / worse if better is not None and worse else None

    def rows(self) -> list[tuple[str, ...]]:
        """Returns the rows of the table. Each load has a row for each broker, in the plan's order."""
        return [self._row(load, side) for load, side in self._order()]

    def footer(self) -> list[str]:
        """Returns the lines that are printed below the table."""
        lines = [f"{name}: {value}" for name, value in self.environment.items()]
        return lines + [f"Could not be measured: {run}" for run in self.failed] + self._short() + self._failures() + self._busy()

    def write(self, directory: Path) -> None:
        """Writes results.json and results.md."""
        directory.mkdir(parents=True, exist_ok=True)
        document = {
            "environment": dict(self.environment),
            "failed": self.failed,
            "samples": [
                {**asdict(load), "unit": load.unit, "broker": side.value, **asdict(sample)}
                for (load, side), samples in self.samples.items()
                for sample in samples
            ],
        }
        (directory / "results.json").write_text(json.dumps(document, indent=1))
        (directory / "results.md").write_text(self.markdown())

    def markdown(self) -> str:
        """Returns the table and its footer as Markdown."""
        lines = [COLUMNS, ("---",) * len(COLUMNS), *self.rows()]
        table = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
        return table + "\n\n" + "\n".join(f"- {line}" for line in self.footer()) + "\n"

    def tables(self, width: int) -> list[Table]:
        """Returns the tables for a terminal of this width."""
        ends = [number for number, (load, side) in enumerate(self._order()) if side is self._sides(load)[-1]]
        return tables_within(width, COLUMNS, self.rows(), labels=2, section_ends=ends)

    def _loads(self) -> list[Load]:
        return list(dict.fromkeys(load for load, _ in self.samples))

    def _order(self) -> list[tuple[Load, Side]]:
        return [(load, side) for load in self._loads() for side in self._sides(load)]

    def _sides(self, load: Load) -> list[Side]:
        return [side for side in Side if (load, side) in self.samples]

    def _row(self, load: Load, side: Side) -> tuple[str, ...]:
        samples = self.samples[load, side]
        is_ours = side is Side.OURS
        return (
            f"{load.name}, {load.unit}" if side is self._sides(load)[0] else "",
            side.value,
            _result([sample.result for sample in samples]) + self._mark(samples),
            _number(self.ratio(load, side), 2) if side is not Side.APACHE else "",
            f"{load.wanted:.1f}" if is_ours else "",
            _number(self._median(load, side, "p50_ms"), 2),
            _number(self._median(load, side, "p99_ms"), 2),
            _number(self._median(load, side, "cpu_us"), 0),
            _number(self._median(load, side, "peak_mib"), 0),
            _number(self._median(load, side, "start_s"), 2),
            _dropped(samples),
        )

    def _median(self, load: Load, side: Side, name: str) -> float | None:
        values = [value for sample in self.samples[load, side] if (value := getattr(sample, name)) is not None]
        return float(statistics.median(values)) if values else None

    def _mark(self, samples: Sequence[Sample]) -> str:
        return BUSY_MARK if any(sample.others.is_busy for sample in samples) else ""

    def _short(self) -> list[str]:
        """Returns lines that list the loads for which our broker misses the project's target ratio."""
        loads = self._loads()
        short = {
            "Ratio below the aim": [load for load in loads if (self.ratio(load) or load.wanted) < load.wanted],
            f"More than 1/{LESS_MEMORY} of Apache's memory": list(filter(self._needs_much_memory, loads)),
        }
        return [f"{what}: {', '.join(load.name for load in names)}" for what, names in short.items() if names]

    def _needs_much_memory(self, load: Load) -> bool:
        if any((load, side) not in self.samples for side in (Side.OURS, Side.APACHE)):
            return False
        ours, apache = (self._median(load, side, "peak_mib") for side in (Side.OURS, Side.APACHE))
        return ours is not None and apache is not None and ours * LESS_MEMORY > apache

    def _failures(self) -> list[str]:
        lines = []
        for (load, side), samples in self.samples.items():
            errors, doubled = (sum(getattr(sample, name) for sample in samples) for name in ("errors", "doubled"))
            if errors or doubled:
                first = next((f" ({sample.error})" for sample in samples if sample.error), "")
                lines.append(
                    f"{load.name}, {side.value}: {errors:,} requests failed{first}, {doubled:,} messages delivered twice"
                )
        return lines

    def _busy(self) -> list[str]:
        busy = [
            f"{load.name}, {side.value}: {sample.others.processors:.1f} processors ({sample.others.programs}), "
            f"load average {sample.others.load_before:.1f} before and {sample.others.load_after:.1f} after"
            for (load, side), samples in self.samples.items()
            for sample in samples
            if sample.others.is_busy
        ]
        what = (
            f"{BUSY_MARK} The machine was busy: other programs used more than {BUSY_FROM:g} processors. Do not trust these rows."
        )
        return [what, *busy] if busy else []


def _result(values: Sequence[float]) -> str:
    middle, least, most = statistics.median(values), min(values), max(values)
    places = 0 if least >= 1000 else 2
    return f"{middle:,.{places}f} ({least:,.{places}f}, {most:,.{places}f})"


def _number(value: float | None, places: int) -> str:
    return _UNKNOWN if value is None else f"{value:,.{places}f}"


def _dropped(samples: Sequence[Sample]) -> str:
    dropped, messages = sum(sample.dropped for sample in samples), sum(sample.messages for sample in samples)
    return f"{dropped / messages:.1%}" if dropped and messages else "0"
