"""Writes the results of a search for planted bugs to `found.py` and to the docs page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lab.simulation.planted.all_planted import ALL_PLANTED
from lab.simulation.planted.found import FoundBug
from lab.simulation.planted.table import as_markdown

_FOUND = "lab/simulation/planted/found.py"
_PAGE = "docs/simulation-planted.md"
_MAX_LINE_LENGTH = 130


def write_found(root: Path, found: Mapping[str, FoundBug]) -> None:
    """Replaces the results in the module `found` and the tables in the docs page, both below `root`."""
    module, page = root / _FOUND, root / _PAGE
    head, opening, rest = module.read_text(encoding="utf-8").partition("FOUND: Final[Mapping[str, FoundBug]] = {\n")
    _, closing, tail = rest.partition("\n}\n")
    rows = "\n".join(_row(name, bug) for name, bug in found.items())
    module.write_text(f"{head}{opening}{rows}{closing}{tail}", encoding="utf-8")
    head, _, _ = page.read_text(encoding="utf-8").partition("\n## ")
    page.write_text(f"{head}\n{as_markdown(ALL_PLANTED, found=found)}", encoding="utf-8")


def _row(name: str, bug: FoundBug) -> str:
    values = f'{bug.tried}, {bug.seeds}, "{bug.remark}"'
    if bug.cpu_s is not None:
        values += f", {bug.cpu_s}" if bug.events is None else f", {bug.cpu_s}, {bug.events}"
    row = f'    "{name}": FoundBug({values}),'
    return row if len(row) <= _MAX_LINE_LENGTH else f'    "{name}": FoundBug(\n        {values}\n    ),'
