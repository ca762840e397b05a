"""The recipes, and the distributions that the `pip install` line of a recipe's README brings."""

import re
import shlex
from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

RECIPES = sorted(program.parent for program in (Path(__file__).parents[1] / "tutorials" / "recipes").glob("*/__main__.py"))


def brought_by_pip_line(recipe: Path) -> set[str]:
    """Returns the distributions that the line names, and all of their dependencies. The broker's package is one of them."""
    (line,) = re.findall(r"^    pip install (.+)$", (recipe / "README.md").read_text(), re.MULTILINE)
    seen: set[tuple[str, str]] = set()
    words = shlex.split(line.replace("./broker", "rocketmq-broker"))
    return {name for word in words for name in installed_by(Requirement(word), seen)}


def installed_by(wanted: Requirement, seen: set[tuple[str, str]]) -> Iterator[str]:
    """Yields the distribution that a requirement names, and all of its dependencies."""
    yield canonicalize_name(wanted.name)
    for extra in ("", *wanted.extras):
        if (wanted.name, extra) in seen:
            continue
        seen.add((wanted.name, extra))
        for text in requires(wanted.name) or ():
            brought = Requirement(text)
            if brought.marker is None or brought.marker.evaluate({"extra": extra}):
                yield from installed_by(brought, seen)
