"""The tools that compare the two tables. Each run of a tool has its own process."""

import os
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

import msgspec

from lab.benchmarks.reconciliation.runs import RunFailed, Usage, measured, reconcile_command
from lab.benchmarks.reconciliation.two_tables.differences import Differences, differences_in_findings

_PROJECT: Final = Path(__file__).resolve().parents[4]
_ROOM: Final = "lab.benchmarks.reconciliation.two_tables"


class Tool(StrEnum):
    """A tool that compares the two tables."""

    OURS = "ours"
    DATACOMPY = "datacompy"
    DUCKDB = "DuckDB"


_MODULES: Final = {Tool.DATACOMPY: "datacompy", Tool.DUCKDB: "duckdb"}
_PROGRAMS: Final = {Tool.DATACOMPY: f"{_ROOM}.with_datacompy", Tool.DUCKDB: f"{_ROOM}.with_duckdb"}


@dataclass(frozen=True, slots=True)
class ToolRun:
    """One run of one tool."""

    tool: Tool
    usage: Usage
    found: Differences


def tools_here(packages: Path) -> list[Tool]:
    """Returns our reconciliation, and the other tools that are installed in `packages` or in this environment."""
    path = [str(packages), *sys.path]
    return [tool for tool in Tool if tool not in _MODULES or PathFinder.find_spec(_MODULES[tool], path) is not None]


def how_to_get(missing: Sequence[Tool], packages: Path) -> str:
    """Returns a sentence that describes how to install the missing tools."""
    names = " and ".join(_MODULES[tool] for tool in missing)
    wanted = tomllib.loads((_PROJECT / "pyproject.toml").read_text())["dependency-groups"]["comparison"]
    command = f"{sys.executable} -m pip install --target {packages} {' '.join(wanted)}"
    return f"To measure {names} too, install the group `comparison` of pyproject.toml: {command}"


def compare(tool: Tool, folder: Path, memory: str, packages: Path) -> ToolRun:
    """Compares the two tables of `write_books` in this folder with a tool. Raises RunFailed."""
    if tool is Tool.OURS:
        answer, usage = measured(reconcile_command(folder, memory, folder / "out-of-two-tables"))
        return ToolRun(tool, usage, differences_in_findings(msgspec.json.decode(answer)["findings"]))
    # In a separate folder: pandas beside our packages would change pyspark's behaviour.
    paths = [str(packages), str(_PROJECT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    answer, usage = measured([sys.executable, "-m", _PROGRAMS[tool], str(folder), memory], environment=environment)
    try:
        return ToolRun(tool, usage, msgspec.json.decode(answer, type=Differences))
    except msgspec.MsgspecError as error:
        raise RunFailed(f"{tool.value} printed an invalid result ({error}): {answer[:100]!r}") from None
