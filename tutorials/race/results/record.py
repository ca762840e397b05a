"""Reads and writes the race's figures as JSON."""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tutorials.race.results.figures import Figures


@dataclass(frozen=True, slots=True)
class Record:
    """The figures of a run of the race."""

    orders: int
    """Number of orders in each cell, unless its figures have another number."""
    seed: int
    figures: Sequence[Figures]

    def written(self) -> str:
        """Returns the record as JSON."""
        cells = [dataclasses.asdict(one) for one in self.figures]
        return json.dumps({"orders": self.orders, "seed": self.seed, "cells": cells}, indent=1) + "\n"


def read_record(text: str) -> Record:
    """Parses the output of `written`. Raises ValueError, KeyError, TypeError."""
    found = json.loads(text)
    return Record(found["orders"], found["seed"], [Figures(**cell) for cell in found["cells"]])


def kept(file: Path | None, way: str) -> list[Figures]:
    """Returns the file's figures of this way, or an empty list without a file."""
    if file is None or not file.exists():
        return []
    return [one for one in read_record(file.read_text()).figures if one.way == way]
