"""Writes the results as a table, as JSON and as Markdown."""

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from rich.table import Table

from lab.benchmarks.orders.sample import Case, Sample
from lab.benchmarks.tables import tables_within

PROCESSES: Final = ("order service", "broker", "credit service", "worker")
COLUMNS: Final = (
    "delivery, broker, database",
    "orders/s (min, max)",
    "POST p50, p99 ms",
    "POST to credit p50, p99 ms",
    *(f"CPU ms: {name}" for name in PROCESSES),
    "refused",
    "missing",
)

Samples = Mapping[Case, Sequence[Sample]]


def rows(samples: Samples) -> list[tuple[str, ...]]:
    """Returns the table row of each case, with the medians over its rounds."""
    return [_row(case, of_case) for case, of_case in samples.items()]


def tables(samples: Samples, width: int) -> list[Table]:
    """Returns the tables for a terminal of this width."""
    return tables_within(width, COLUMNS, rows(samples))


def write(samples: Samples, environment: Mapping[str, str], directory: Path) -> None:
    """Writes results.json and results.md."""
    directory.mkdir(parents=True, exist_ok=True)
    document = {
        "environment": dict(environment),
        "samples": [{**asdict(case), **asdict(sample)} for case, of_case in samples.items() for sample in of_case],
    }
    (directory / "results.json").write_text(json.dumps(document, indent=1))
    lines = [COLUMNS, ("---",) * len(COLUMNS), *rows(samples)]
    markdown = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    (directory / "results.md").write_text(markdown + "\n" + "".join(f"- {name}: {text}\n" for name, text in environment.items()))


def _row(case: Case, samples: Sequence[Sample]) -> tuple[str, ...]:
    def median(value: Callable[[Sample], float]) -> float:
        return statistics.median(map(value, samples))

    rates = [sample.orders_per_s for sample in samples]
    return (
        case.name,
        f"{statistics.median(rates):,.0f} ({min(rates):,.0f}, {max(rates):,.0f})",
        f"{median(lambda sample: sample.post_ms[0]):,.1f}, {median(lambda sample: sample.post_ms[1]):,.1f}",
        f"{median(lambda sample: sample.credit_ms[0]):,.0f}, {median(lambda sample: sample.credit_ms[1]):,.0f}",
        *(_cpu(samples, name) for name in PROCESSES),
        f"{sum(sample.refused for sample in samples)}",
        f"{sum(sample.missing for sample in samples)}",
    )


def _cpu(samples: Sequence[Sample], name: str) -> str:
    return f"{statistics.median(sample.cpu_ms[name] for sample in samples):.1f}"
