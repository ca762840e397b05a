"""Databases of explored worlds, for programs with SQLAlchemy or SQLModel."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rocketmq_broker.testing.exploring.errors import UnusableTest
from rocketmq_broker.testing.simulation.databases.faults import new_deaths
from rocketmq_broker.testing.simulation.faults import Effect
from rocketmq_broker.testing.simulation.loop import OWNER
from rocketmq_broker.testing.simulation.met_faults import MetFaults
from rocketmq_broker.testing.simulation.process import SimulatedProcess
from rocketmq_broker.testing.simulation.world import SimulatedWorld

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from rocketmq_broker.testing.simulation.databases.database import SimulatedDatabase

_FAULTS: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_IOERR})


class ExploredDatabase:
    """A database that outlives the programs. Its statements may fail, hang, lose a response, or end a program."""

    def __init__(self, database: SimulatedDatabase) -> None:
        """Wraps a database of the world. Tests call `ExploredWorld.database`."""
        self._database = database
        self._engines: dict[SimulatedProcess, Engine] = {}

    @property
    def engine(self) -> Engine:
        """The engine of the calling program, for a `Session`. Its connections break when the program dies.

        Use it in plain functions, which run in threads. Outside of programs, such as in the test's assertions, it has no faults.
        """
        owner = OWNER.get()
        if not isinstance(owner, SimulatedProcess):
            return _plain_engine(self._database.path)
        if owner not in self._engines:
            self._engines[owner] = self._database.engine_for(owner)
        return self._engines[owner]


class WorldDatabases:
    """The databases of one world."""

    def __init__(self, world: SimulatedWorld) -> None:
        """Creates an empty set."""
        self._world = world
        self._met = MetFaults()
        self._deaths = new_deaths()
        self._all: dict[str, SimulatedDatabase] = {}

    def __iter__(self) -> Iterator[str]:
        """Yields the names."""
        return iter(self._all)

    def create(self, name: str, prepare: Callable[[Engine], object] | None) -> ExploredDatabase:
        """Returns a new database. `prepare` creates its tables. Raises UnusableTest."""
        if find_spec("sqlalchemy") is None:
            raise UnusableTest(
                "world.database needs the package sqlalchemy: pip install 'rocketmq-broker[simulation,sqlalchemy]'"
            )
        if name in self._all:
            raise UnusableTest(f"the world already has a database {name}: give each database its own name")
        from rocketmq_broker.testing.simulation.databases.database import SimulatedDatabase

        world, met = self._world, self._met
        database = self._all[name] = SimulatedDatabase(
            name, world.history, world.chance("database", name), loop=world.loop,
            on_fault=lambda word: met.met(name, word), deaths=self._deaths,
        )  # fmt: skip
        if prepare is not None:
            prepare(_plain_engine(database.path))
        return ExploredDatabase(database)

    def effects(self) -> Mapping[str, Effect]:
        """Returns the effects of the databases' faults. All databases together count the steps of a program."""
        if not self._all:
            return {}
        from rocketmq_broker.testing.simulation.databases.effects import DatabaseEffects

        one = next(iter(self._all.values()))
        return DatabaseEffects(self._all, lambda program: one, self._met).effects()

    def end_faults(self) -> None:
        """Ends all faults."""
        for database in self._all.values():
            database.end_faults()

    def close(self) -> None:
        """Closes all connections and removes the files."""
        for database in self._all.values():
            database.close()
        self._all.clear()


def is_database_fault(error: BaseException) -> bool:
    """Returns whether the error is one that a fault of a database raises: a broken connection, or a lock held too long."""
    return isinstance(error, sqlite3.OperationalError) and getattr(error, "sqlite_errorcode", None) in _FAULTS


def _plain_engine(path: Path) -> Engine:
    """Returns an engine of a SQLite file, without faults, that keeps no connection open."""
    from sqlalchemy import NullPool, create_engine

    return create_engine(f"sqlite:///{path}", poolclass=NullPool)
