"""The planted bugs as a table in Markdown: what each does, which test notices it, and after how many worlds it was found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from simulation.planted.bug import Planted
from simulation.planted.found import FOUND, FoundBug
from simulation.planted.noticed import NOTICED_BY

_HEAD = "| Bug | What is wrong | It needs | Noticed by | Seeds | Broken promise |\n| --- | --- | --- | --- | --- | --- |"


def as_markdown(
    bugs: Iterable[Planted],
    noticed_by: Mapping[str, str | None] = NOTICED_BY,
    found: Mapping[str, FoundBug] = FOUND,
) -> str:
    """Returns a heading and a table for each area. A dash stands for what was not tried yet."""
    areas: dict[str, list[str]] = {}
    for bug in bugs:
        seen = _noticed(noticed_by.get(bug.name)) if bug.name in noticed_by else "-"
        seeds, promise = _found(found.get(bug.name))
        row = f"| `{bug.name}` | {bug.sentence} | {bug.needs} | {seen} | {seeds} | {promise} |"
        areas.setdefault(f"{bug.area}".capitalize(), []).append(row)
    return "\n\n".join(f"## {area}\n\n{_HEAD}\n" + "\n".join(rows) for area, rows in areas.items()) + "\n"


def _noticed(test: str | None) -> str:
    return "**no test**" if test is None else f"`{test}`"


def _found(bug: FoundBug | None) -> tuple[str, str]:
    if bug is None:
        return "-", "-"
    if bug.seeds is None:
        return f"not in {bug.tried}", bug.remark
    return str(bug.seeds), bug.remark
