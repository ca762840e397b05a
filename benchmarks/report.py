"""The results: a table for people, JSON and Markdown for later."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.table import Column, Table

from benchmarks.brokers import Side
from benchmarks.measure import Sample
from benchmarks.plan import Load

COLUMNS = ("load", "broker", "sent/s", "committed/s (least, most)", "ratio", "p50 ms", "p99 ms", "CPU s/1000", "MiB", "start s")


@dataclass(slots=True)
class Results:
    """All samples by load and side."""

    environment: Mapping[str, str]
    samples: dict[tuple[Load, Side], list[Sample]] = field(default_factory=dict)
    recovery_s: dict[Side, float] = field(default_factory=dict)
    recovered: int = 0

    def add(self, load: Load, side: Side, sample: Sample) -> None:
        """One more."""
        self.samples.setdefault((load, side), []).append(sample)

    def ratio(self, load: Load) -> float | None:
        """Ours to Apache's: the medians of committed/s; None while one of them is missing."""
        if (load, Side.OURS) not in self.samples or (load, Side.APACHE) not in self.samples:
            return None
        return self._median(load, Side.OURS, "committed_per_s") / self._median(load, Side.APACHE, "committed_per_s")

    def rows(self) -> list[tuple[str, ...]]:
        """The table's rows, two for each load."""
        return [self._row(load, side, samples) for (load, side), samples in sorted(self.samples.items(), key=_order)]

    def footer(self) -> list[str]:
        """What the table has no place for."""
        lines = [f"{name}: {value}" for name, value in self.environment.items()]
        lines += [
            f"{side.value}: {seconds:.1f} s from a start after kill -9 with {self.recovered:,} messages to one accepted"
            for side, seconds in self.recovery_s.items()
        ]
        failures = {side: self._failures(side) for side in Side}
        lines += [
            f"{side.value}: {count} sends failed, or messages were lost or doubled" for side, count in failures.items() if count
        ]
        return lines

    def write(self, directory: Path) -> None:
        """Writes results.json and results.md."""
        directory.mkdir(parents=True, exist_ok=True)
        document = {
            "environment": dict(self.environment),
            "recovery": {"messages": self.recovered, **{side.value: seconds for side, seconds in self.recovery_s.items()}},
            "samples": [
                {**asdict(load), "broker": side.value, **asdict(sample)}
                for (load, side), samples in self.samples.items()
                for sample in samples
            ],
        }
        (directory / "results.json").write_text(json.dumps(document, indent=1))
        (directory / "results.md").write_text(self.markdown())

    def markdown(self) -> str:
        """The table and what belongs to it."""
        lines = [COLUMNS, ("---",) * len(COLUMNS), *self.rows()]
        table = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
        return table + "\n\n" + "\n".join(f"- {line}" for line in self.footer()) + "\n"

    def table(self) -> Table:
        """For the terminal."""
        table = Table(*(Column(name, justify="left" if name in ("load", "broker") else "right") for name in COLUMNS))
        for (_, side), row in zip(sorted(self.samples, key=lambda key: _order((key, None))), self.rows(), strict=True):
            table.add_row(*row, end_section=side is Side.APACHE)
        return table

    def _row(self, load: Load, side: Side, samples: Sequence[Sample]) -> tuple[str, ...]:
        committed = [sample.committed_per_s for sample in samples]
        ratio = self.ratio(load) if side is Side.OURS else None
        return (
            f"{load.flush.removesuffix('_FLUSH')} {load.header} {load.name}" if side is Side.OURS else "",
            side.value,
            f"{self._median(load, side, 'sent_per_s'):,.0f}",
            f"{statistics.median(committed):,.0f} ({min(committed):,.0f}, {max(committed):,.0f})",
            f"{ratio:.2f}" if ratio is not None else "",
            f"{self._median(load, side, 'p50_ms'):.2f}",
            f"{self._median(load, side, 'p99_ms'):.2f}",
            f"{self._median(load, side, 'cpu_s_per_1000'):.3f}",
            f"{self._median(load, side, 'peak_mib'):,.0f}",
            f"{self._median(load, side, 'start_s'):.2f}",
        )

    def _median(self, load: Load, side: Side, name: str) -> float:
        return float(statistics.median(getattr(sample, name) for sample in self.samples[load, side]))

    def _failures(self, side: Side) -> int:
        return sum(sample.failures for (_, whose), samples in self.samples.items() if whose is side for sample in samples)


def _order(item: tuple[tuple[Load, Side], object]) -> tuple[str, str, float, bool]:
    (load, side), _ = item
    return load.flush, load.header, load.threads or float("inf"), side is Side.APACHE
