"""Time, chance and names come in by `rocketmq_broker.world`, or by the event loop: no other module asks for them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocketmq_broker.world import World, current_world, in_world

BROKER = Path(__file__).parents[2] / "broker" / "rocketmq_broker"

READERS = {
    "time": {
        "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time", "thread_time", "sleep",
    },
    "os": {"getpid", "urandom", "getrandom", "uname", "times"},
    "socket": {"gethostname", "getfqdn", "gethostbyname", "getaddrinfo"},
    "datetime": {"now", "utcnow", "today"},
    "random": None, "secrets": None, "uuid": None, "platform": None,
}  # fmt: skip
"""By module: what reads the world; None if all of it does."""

MAY_READ = {
    "world.py": "it is the seam",
    "build_info.py": "it says which build runs, for --version",
    "logs/handler.py": "a log line says when it was really written, and a flood of lines is one of real time",
}


def readings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of everything in a module that reads the world, whether it is called or handed on."""
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                aliases[name.asname or name.name] = name.name
                if name.name in READERS and READERS[name.name] is None:
                    yield node.lineno, name.name
        elif isinstance(node, ast.ImportFrom) and node.module in READERS:
            wanted = READERS[node.module]
            for name in node.names:
                if wanted is None or name.name in wanted:
                    yield node.lineno, f"{node.module}.{name.name}"
                aliases[name.asname or name.name] = node.module
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            wanted = READERS.get(aliases.get(node.value.id, ""))
            if wanted is not None and node.attr in wanted:
                yield node.lineno, f"{node.value.id}.{node.attr}"


@pytest.mark.parametrize(
    "source",
    [
        "import time\nlater = time.monotonic() + 1",
        "from time import monotonic as now\nnow()",
        "import os as system\nsystem.getpid",
        "from datetime import datetime\ndatetime.now()",
        "import random",
        "def f(clock=__import__('x')):\n    import uuid",
    ],
)
def test_a_reading_of_the_world_is_noticed(source: str) -> None:
    assert list(readings(ast.parse(source)))


@pytest.mark.parametrize("source", ["import time\ntime.localtime(1)", "import os\nos.replace(a, b)", "loop.time()"])
def test_what_reads_nothing_is_passed_over(source: str) -> None:
    assert not list(readings(ast.parse(source)))


def test_nobody_but_the_world_reads_clock_chance_or_names() -> None:
    found = {
        f"{path.relative_to(BROKER)}:{line}: {name}"
        for path in BROKER.rglob("*.py")
        if str(path.relative_to(BROKER)) not in MAY_READ and "testing" not in path.parts
        for line, name in readings(ast.parse(path.read_text()))
    }
    assert not found, "take it from rocketmq_broker.world.current_world():\n" + "\n".join(sorted(found))


def test_those_who_may_read_do() -> None:
    assert all(list(readings(ast.parse((BROKER / name).read_text()))) for name in MAY_READ)


def test_the_world_is_the_real_one_unless_another_is_entered() -> None:
    real, other = current_world(), World(wall_ns=lambda: 5_000_000)
    with in_world(other):
        assert current_world().wall_ms() == 5
    assert current_world() is real
