"""Time, randomness and names come from `rocketmq_broker.world` or the broker's event loop, and from no other module."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from rocketmq_broker.world import World, current_world, in_world
from tests.parsed import parsed

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "broker/rocketmq_broker", "packages/commitlog/rocketmq_commitlog", "packages/faststream-rocketmq/faststream_rocketmq",
    "credit_service", "demo",
    "inventory_service", "order_messages", "order_service", "pipelines", "service_runtime", "lab/simulation",
)  # fmt: skip
WORLD = "rocketmq_broker.world"

READERS = {
    "time": {
        "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time", "thread_time", "sleep",
    },
    "os": {"getpid", "urandom", "getrandom", "uname", "times"},
    "socket": {"gethostname", "getfqdn", "gethostbyname", "getaddrinfo"},
    "datetime": {"now", "utcnow", "today"},
    "uuid": {"uuid1", "uuid4", "getnode"},
    "threading": {"Timer"},
    "random": None, "secrets": None, "platform": None, "sched": None, "stamina": None,
}  # fmt: skip
"""By module: what reads the world; None if all of it does."""

EVENT_LOOP = {"asyncio": {"sleep", "timeout", "timeout_at", "wait_for", "get_running_loop", "get_event_loop"}}
"""The time of the broker, and of the simulation, whose worlds play on such a loop. Others live by what they were given."""

MAY_READ = {
    "broker/rocketmq_broker/world.py": "it is the seam",
    "broker/rocketmq_broker/remoting/event_loop.py": "it measures how long it really slept; a world's loop is another one",
    "broker/rocketmq_broker/platform/processes.py": "a process kills the real one that it was forked from",
    "broker/rocketmq_broker/build_info.py": "it says which build runs, for --version",
    "broker/rocketmq_broker/logs/handler.py": "a line says when it was really written, and a flood of lines is one of real time",
    "broker/rocketmq_broker/testing/*": "it makes worlds, and waits in real time for clients elsewhere",
    "demo/*": "it starts real processes and waits for them",
    "pipelines/commands/*": "a command dates its run and measures it",
    "pipelines/increments/state.py": "it names a folder as no other process on this disk does",
    "pipelines/run_folders.py": "it names a folder as no other process on this disk does",
    "pipelines/repair/audit.py": "a line of the audit says who repaired, and when that really was",
    "service_runtime/database/opening.py": "it waits for a database while a process starts",
    "service_runtime/http/listening.py": "it resolves the name to listen on",
}
"""Who reads the real world past `rocketmq_broker.world`, and why. Add nobody whose work a test would repeat from a seed."""

ROOTS = {
    "broker/rocketmq_broker/app/broker.py": "it builds the broker",
    "broker/rocketmq_broker/__main__.py": "it runs a cluster's supervisor",
    "broker/rocketmq_broker/nameserver/__main__.py": "it builds a name server",
    "broker/rocketmq_broker/client/producer/producer.py": "a program makes it, in whichever world it runs",
    "broker/rocketmq_broker/client/transaction/transaction_producer.py": "a program makes it",
    "broker/rocketmq_broker/client/push/push_consumer.py": "a program makes it",
    "broker/rocketmq_broker/client/pull/pull_consumer.py": "a program makes it",
    "broker/rocketmq_broker/client/event_loop_thread.py": "a program makes it, and its world may have no threads",
    "broker/rocketmq_broker/databases/inbox.py": "a program makes an inbox, in whichever world it runs",
    "broker/rocketmq_broker/admin/options.py": "commands begin here",
    "broker/rocketmq_broker/admin/messages/commands.py": "a command begins here",
    "broker/rocketmq_broker/admin/console/application.py": "it builds the console",
    "broker/rocketmq_broker/testing/*": "it builds a broker in another world",
    "demo/play/system.py": "a page begins here, and its broker makes the world",
    "service_runtime/service.py": "it opens a service, and passes the world to the builder of its parts",
    "*_service/entrypoints/process.py": "some of its commands need no service",
    "credit_service/worker/*": "it builds the worker, or asks for it",
    "credit_service/settings.py": "a worker has the machine's name unless it is given another",
    "service_runtime/database/engine.py": "SQLAlchemy's pool calls it, also in forked workers, and hands it nothing of ours",
    "order_service/migrations/*": "Alembic runs it, and hands it nothing of ours",
    "pipelines/repair/at_brokers.py": "it is the command that sends again what was lost",
}
"""Who asks for `current_world()`, and hands on what the others need."""

MAKERS = {
    "broker/rocketmq_broker/world.py": "it has the real one",
    "broker/rocketmq_broker/testing/*": "it has those of tests",
    "lab/simulation/databases/template.py": "a database gets the same identity in each interpreter",
}


def readings(tree: ast.AST, readers: Mapping[str, set[str] | None] = READERS) -> Iterator[tuple[int, str]]:
    """Yields the line and name of each use of a function in `readers`, whether the function is called or passed on."""
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                aliases[name.asname or name.name] = name.name
                if name.name in readers and readers[name.name] is None:
                    yield node.lineno, name.name
        elif isinstance(node, ast.ImportFrom) and node.module in readers:
            wanted = readers[node.module]
            for name in node.names:
                if wanted is None or name.name in wanted:
                    yield node.lineno, f"{node.module}.{name.name}"
                aliases[name.asname or name.name] = node.module
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            wanted = readers.get(aliases.get(node.value.id, ""))
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
        "def f(clock=__import__('x')):\n    import secrets",
        "import uuid\nuuid.uuid4()",
        "from stamina import retry",
    ],
)
def test_a_reading_of_the_world_is_noticed(source: str) -> None:
    assert list(readings(ast.parse(source)))


@pytest.mark.parametrize(
    "source", ["import time\ntime.localtime(1)", "import os\nos.replace(a, b)", "loop.time()", "from uuid import UUID"]
)
def test_what_reads_nothing_is_passed_over(source: str) -> None:
    assert not list(readings(ast.parse(source)))


def test_another_world_is_noticed() -> None:
    assert list(makers(ast.parse("from rocketmq_broker.world import World\ndef f(world=World()): pass")))
    assert not list(makers(ast.parse("from rocketmq_broker.world import World\ndef f(world: World): pass")))


def makers(tree: ast.AST) -> Iterator[int]:
    """Yields the lines in which a module creates a `World`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "World":
            yield node.lineno


@cache
def modules() -> list[tuple[str, ast.AST]]:
    """Returns the path and syntax tree of each shipped module. Paths are relative to the root of the repository."""
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return [(str(path.relative_to(ROOT)), parsed(path)) for path in paths]


def allowed(path: str, places: Mapping[str, str]) -> bool:
    return any(Path(path).match(place) or path.startswith(place.removesuffix("*")) for place in places)


def test_nobody_but_the_world_reads_clock_chance_or_names() -> None:
    found = {f"{path}:{line}: {name}" for path, tree in modules() if not allowed(path, MAY_READ) for line, name in readings(tree)}
    assert not found, "take it from the world that a root hands in (docs/decisions/0060):\n" + "\n".join(sorted(found))


def test_only_broker_and_simulation_live_by_an_event_loop() -> None:
    ours = ("broker/", "lab/simulation/")
    others = [(path, tree) for path, tree in modules() if not path.startswith(ours) and not allowed(path, MAY_READ)]
    found = {f"{path}:{line}: {name}" for path, tree in others for line, name in readings(tree, EVENT_LOOP)}
    assert not found, "what runs in threads waits by what it was given:\n" + "\n".join(sorted(found))


def test_only_roots_ask_for_the_world_and_nobody_makes_one() -> None:
    asking = {path for path, tree in modules() if (WORLD, "current_world") in imported(tree)}
    assert not {path for path in asking if not allowed(path, ROOTS)}, "let the root hand in what is needed"
    making = {path for path, tree in modules() if list(makers(tree))}
    assert not {path for path in making if not allowed(path, MAKERS)}, "let the root hand in its own"


def imported(tree: ast.AST) -> set[tuple[str | None, str]]:
    """Returns the imported names, each with its module."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {(node.module, name.name) for node in imports for name in node.names}


@pytest.mark.parametrize("place", MAY_READ)
def test_those_who_may_read_do(place: str) -> None:
    assert any(list(readings(tree)) for path, tree in modules() if allowed(path, {place: ""}))


@pytest.mark.parametrize("place", ROOTS)
def test_roots_ask(place: str) -> None:
    assert any((WORLD, "current_world") in imported(tree) for path, tree in modules() if allowed(path, {place: ""}))


def test_the_world_is_the_real_one_unless_another_is_entered() -> None:
    real, other = current_world(), World(wall_ns=lambda: 5_000_000)
    with in_world(other):
        assert current_world().wall_ms() == 5
    assert current_world() is real
