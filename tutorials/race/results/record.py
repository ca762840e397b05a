"""The race on file: figures as JSON, so that table and picture can be drawn again without playing."""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tutorials.race.results.figures import Figures


@dataclass(frozen=True, slots=True)
class Record:
    """One run of the race."""

    orders: int
    """In each cell, unless its figures say otherwise."""
    seed: int
    figures: Sequence[Figures]

    def written(self) -> str:
        """Formats the record as JSON."""
        cells = [dataclasses.asdict(one) for one in self.figures]
        return json.dumps({"orders": self.orders, "seed": self.seed, "cells": cells}, indent=1) + "\n"


def read_record(text: str) -> Record:
    """Reads the text of `written`. Raises ValueError, KeyError, TypeError."""
    found = json.loads(text)
    return Record(found["orders"], found["seed"], [Figures(**cell) for cell in found["cells"]])


def kept(file: Path | None, way: str) -> list[Figures]:
    """Returns the file's figures of this way; nothing without such a file."""
    if file is None or not file.exists():
        return []
    return [one for one in read_record(file.read_text()).figures if one.way == way]
