"""Writes `.tours/reading-tour.tour` from docs/tour.md. The editor extension CodeTour plays this file."""

import json
import re
from pathlib import Path
from typing import Any, Final

from rocketmq_broker.stop_signals import until_interrupted

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "tour.md"
TOUR: Final = ROOT / ".tours" / "reading-tour.tour"
_STOP: Final = re.compile(r"^## (?P<title>(?P<number>\d+)\. \[\S+\]\(\.\./(?P<file>\S+)\)|.+)$", re.MULTILINE)
_CHANGE: Final = re.compile(r"^```diff\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\]\((?!\w+:)(\.\./)?([^)]+)\)")
_COMMAND: Final = re.compile(r"^    (?=\.venv/)", re.MULTILINE)


def tour() -> dict[str, Any]:
    """Returns the tour, with a step for each section of the page. A step about a file opens at the lines to change."""
    heading, *sections = re.split(r"^(?=## )", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    title, _, introduction = heading.partition("\n")
    first = {"title": title.removeprefix("# "), "description": _description(introduction)}
    return {
        "$schema": "https://aka.ms/codetour-schema",
        "title": title.removeprefix("# "),
        "description": "Generated from docs/tour.md: python -m deploy.scripts.code_tour",
        "isPrimary": True,
        "steps": [first, *map(_step, sections)],
    }


def _step(section: str) -> dict[str, str]:
    line, _, text = section.partition("\n")
    stop = _STOP.match(line)
    assert stop is not None, line
    if stop["file"] is None:
        return {"title": stop["title"], "description": _description(text)}
    change = _CHANGE.search(text)
    assert change is not None, line
    return {
        "title": f"{stop['number']}. {Path(stop['file']).name}",
        "file": stop["file"],
        "pattern": _pattern(change[1]),
        "description": _description(text),
    }


def _pattern(change: str) -> str:
    """Returns a JavaScript regular expression that matches the lines to change. Line numbers would become outdated."""
    before = [line[1:] for line in change.splitlines() if not line.startswith("+")]
    return r"\r?\n".join(re.sub(r"[\\^$.*+?()\[\]{}|]", r"\\\g<0>", line) for line in before)


def _description(text: str) -> str:
    """Returns the text with links from the root of the checkout, and clickable commands."""
    linked = _LINK.sub(lambda link: f"](./{'' if link[1] else 'docs/'}{link[2]})", text)
    return _COMMAND.sub(">> ", linked).strip()


def main() -> None:
    """Writes the tour to `.tours/reading-tour.tour`."""
    TOUR.parent.mkdir(exist_ok=True)
    TOUR.write_text(f"{json.dumps(tour(), indent=2, ensure_ascii=False)}\n", encoding="utf-8")


if __name__ == "__main__":
    with until_interrupted():
        main()
