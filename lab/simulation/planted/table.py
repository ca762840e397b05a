"""Formats the planted bugs as Markdown tables. They show what each bug does, which test fails with it, and how it was found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lab.simulation.planted.bug import Planted
from lab.simulation.planted.found import FOUND, FoundBug
from lab.simulation.planted.noticed import NOTICED_BY

_COLUMNS = ("Bug", "What is wrong", "It needs", "Noticed by", "Seeds", "CPU s", "Events", "Broken promise")
_HEAD = f"| {' | '.join(_COLUMNS)} |\n|{' --- |' * len(_COLUMNS)}"


def as_markdown(
    bugs: Iterable[Planted],
    noticed_by: Mapping[str, str | None] = NOTICED_BY,
    found: Mapping[str, FoundBug] = FOUND,
) -> str:
    """Returns a summary of all bugs in Markdown, and a heading and a table for each area.

    A dash marks a bug that was not tried.
    """
    all_bugs, areas = list(bugs), dict[str, list[str]]()
    for bug in all_bugs:
        seen = _noticed(noticed_by.get(bug.name)) if bug.name in noticed_by else "-"
        row = f"| `{bug.name}` | {bug.sentence} | {bug.needs} | {seen} | {' | '.join(_found(found.get(bug.name)))} |"
        areas.setdefault(f"{bug.area}".capitalize(), []).append(row)
    names = [bug.name for bug in all_bugs]
    head = f"## All bugs\n\n{_counted(names, found)} {_unnoticed(names, noticed_by)}\n\n"
    return head + "\n\n".join(f"## {area}\n\n{_HEAD}\n" + "\n".join(rows) for area, rows in areas.items()) + "\n"


def _noticed(test: str | None) -> str:
    return "**no test**" if test is None else f"`{test}`"


def _found(bug: FoundBug | None) -> tuple[str, str, str, str]:
    """Returns the table columns with the result of the search."""
    if bug is None:
        return "-", "-", "-", "-"
    seeds = f"not in {bug.tried}" if bug.seeds is None else str(bug.seeds)
    return seeds, _number(bug.cpu_s), _number(bug.events), bug.remark


def _number(number: float | None) -> str:
    return "-" if number is None else f"{number:g}" if number < 100 else f"{number:.0f}"


def _counted(names: Sequence[str], found: Mapping[str, FoundBug]) -> str:
    seeds = [bug.seeds for name in names if (bug := found.get(name)) is not None and bug.seeds is not None]
    return f"{len(seeds)} of {len(names)} were found" + (f", each within {max(seeds)} worlds." if seeds else ".")


def _unnoticed(names: Sequence[str], noticed_by: Mapping[str, str | None]) -> str:
    alone = [f"`{name}`" for name in names if name in noticed_by and noticed_by[name] is None]
    return f"No other test notices {', '.join(alone)}." if alone else "Each is noticed by another test of the project, too."
