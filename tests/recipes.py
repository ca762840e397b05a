"""The recipes, and the distributions that the `pip install` line of a recipe's README brings."""

import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
RECIPES = sorted(program.parent for program in (ROOT / "tutorials" / "recipes").glob("*/__main__.py"))


def brought_by_pip_line(recipe: Path, *, with_broker: bool) -> set[str]:
    """Returns the distributions that the line names, and all of their dependencies.

    The broker's package is the first. Without it, only what the line names beside it counts.
    """
    ((broker, others),) = re.findall(
        r"^    pip install ('?\./broker(?:\[simulation\]')?) (.+)$", (recipe / "README.md").read_text(), re.MULTILINE
    )
    line = f"{broker.replace('./broker', 'rocketmq-broker')} {others}" if with_broker else others
    return installed_by(shlex.split(line))


def installed_by(requirements: Iterable[str]) -> set[str]:
    """Returns the names of all distributions that pip installs for these requirements on this Python."""
    seen: set[tuple[str, str]] = set()
    waiting = [Requirement(one) for one in requirements]
    while waiting:
        wanted = waiting.pop()
        for key in {(wanted.name, extra) for extra in ("", *wanted.extras)} - seen:
            seen.add(key)
            brought = requirements_of(*key)
            waiting += [one for one in brought if one.marker is None or one.marker.evaluate({"extra": key[1]})]
    return {canonicalize_name(name) for name, _ in seen}


def requirements_of(name: str, extra: str) -> Iterator[Requirement]:
    """Yields what a distribution needs with one of its extras. The broker's is not installed in a checkout: its project tells."""
    if name == "rocketmq-broker":
        project = tomllib.loads((ROOT / "broker" / "pyproject.toml").read_text())["project"]
        yield from map(Requirement, project["optional-dependencies"][extra] if extra else project["dependencies"])
    else:
        yield from map(Requirement, requires(name) or ())
