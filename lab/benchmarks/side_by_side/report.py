"""Writes the results as tables, as JSON and as Markdown."""

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
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
    "of floor",
    "wanted",
    "warm-up s",
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
OF_APACHES_CPU = 0.5
"""The greatest ratio of our CPU time for a message to Apache's that the project aims for."""
OF_THE_FLOOR = 0.5
"""The smallest ratio of our result to the floor's that the project aims for."""
UNSTEADY_MARK = "~"
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

    def ratio(self, load: Load, side: Side = Side.OURS, to: Side = Side.APACHE) -> float | None:
        """Returns the factor by which the median of `side` is better than that of `to`. Returns None until both are measured."""
        this, other = (self._median(load, each, "result") for each in (side, to))
        better, worse = (other, this) if load.is_less_better else (this, other)
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
        table = "\n".join(map(markdown_row, lines))
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
            _number(self.ratio(load, side), 2) if side not in (Side.APACHE, Side.FLOOR) else "",
            _number(self.ratio(load, side, Side.FLOOR), 2) if side is not Side.FLOOR else "",
            f"{load.wanted:.1f}" if is_ours else "",
            _warm_up(samples),
            _number(self._median(load, side, "p50_ms"), 2),
            _number(self._median(load, side, "p99_ms"), 2),
            _number(self._median(load, side, "cpu_us"), 0),
            _number(self._median(load, side, "peak_mib"), 0),
            _number(self._median(load, side, "start_s"), 2),
            _dropped(samples),
        )

    def _median(self, load: Load, side: Side, name: str) -> float | None:
        values = [value for sample in self.samples.get((load, side), ()) if (value := getattr(sample, name)) is not None]
        return float(statistics.median(values)) if values else None

    def _mark(self, samples: Sequence[Sample]) -> str:
        return BUSY_MARK if any(sample.others.is_busy for sample in samples) else ""

    def _short(self) -> list[str]:
        """Returns lines that list the loads for which our broker misses a target of the project."""
        missed: Mapping[str, Callable[[Load], bool]] = {
            "Ratio below the aim": lambda load: (self.ratio(load) or load.wanted) < load.wanted,
            f"Less than {OF_THE_FLOOR} of the floor": lambda load: (self.ratio(load, to=Side.FLOOR) or 1) < OF_THE_FLOOR,
            f"More than {OF_APACHES_CPU} of Apache's CPU time": lambda load: self._exceeds(load, "cpu_us", OF_APACHES_CPU),
            f"More than 1/{LESS_MEMORY} of Apache's memory": lambda load: self._exceeds(load, "peak_mib", 1 / LESS_MEMORY),
        }
        short = {what: [load.name for load in self._loads() if is_missed(load)] for what, is_missed in missed.items()}
        return [f"{what}: {'; '.join(names)}" for what, names in short.items() if names]

    def _exceeds(self, load: Load, name: str, share: float) -> bool:
        """Returns True if our broker needs more than this share of what Apache's needs."""
        ours, apache = (self._median(load, side, name) for side in (Side.OURS, Side.APACHE))
        return ours is not None and apache is not None and ours > share * apache

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


def markdown_row(cells: Sequence[str]) -> str:
    """Returns a row of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def _result(values: Sequence[float]) -> str:
    middle, least, most = statistics.median(values), min(values), max(values)
    places = 0 if least >= 1000 else 2
    return f"{middle:,.{places}f} ({least:,.{places}f}, {most:,.{places}f})"


def _number(value: float | None, places: int) -> str:
    return _UNKNOWN if value is None else f"{value:,.{places}f}"


def _warm_up(samples: Sequence[Sample]) -> str:
    return ", ".join(
        f"{sample.warm_up_s:.0f}{'' if sample.is_steady else UNSTEADY_MARK}" for sample in samples if sample.warm_up_s is not None
    )


def _dropped(samples: Sequence[Sample]) -> str:
    dropped, messages = sum(sample.dropped for sample in samples), sum(sample.messages for sample in samples)
    return f"{dropped / messages:.1%}" if dropped and messages else "0"
