"""Reads and writes the results of the comparison as JSON."""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tutorials.race.results.figures import Figures


@dataclass(frozen=True, slots=True)
class Record:
    """The results of one execution of the comparison."""

    orders: int
    """The number of orders for each combination of approach and fault. Figures.orders takes precedence if it differs."""
    seed: int
    figures: Sequence[Figures]
    kept_ways: Sequence[str] = ()
    """The names of the approaches whose figures come from an earlier execution."""

    def written(self) -> str:
        """Returns the results as JSON."""
        cells = [dataclasses.asdict(one) for one in self.figures]
        head = {"orders": self.orders, "seed": self.seed, "kept_ways": list(self.kept_ways)}
        return json.dumps({**head, "cells": cells}, indent=1) + "\n"


def read_record(text: str) -> Record:
    """Parses the output of `Record.written`. Raises ValueError, KeyError or TypeError for other text."""
    found = json.loads(text)
    figures = [Figures(**cell) for cell in found["cells"]]
    return Record(found["orders"], found["seed"], figures, found.get("kept_ways", ()))


def earlier_record(file: Path | None) -> Record | None:
    """Returns the results in this file, or None if there is no file."""
    return read_record(file.read_text()) if file is not None and file.exists() else None
