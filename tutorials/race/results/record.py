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

    def written(self) -> str:
        """Returns the results as JSON."""
        cells = [dataclasses.asdict(one) for one in self.figures]
        return json.dumps({"orders": self.orders, "seed": self.seed, "cells": cells}, indent=1) + "\n"


def read_record(text: str) -> Record:
    """Parses the output of `Record.written`. Raises ValueError, KeyError or TypeError for other text."""
    found = json.loads(text)
    return Record(found["orders"], found["seed"], [Figures(**cell) for cell in found["cells"]])


def kept(file: Path | None, way: str) -> list[Figures]:
    """Returns the figures of the approach `way` in this file, or an empty list if there is no file."""
    if file is None or not file.exists():
        return []
    return [one for one in read_record(file.read_text()).figures if one.way == way]
