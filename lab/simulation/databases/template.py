"""Creates the migrated databases once per interpreter. Each simulation gets copies of them."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from rocketmq_broker.testing.simulation.chance import stream
from rocketmq_broker.testing.simulation.databases.scratch import scratch_folder
from rocketmq_broker.testing.simulation.world import STARTS_MS
from rocketmq_broker.world import World, in_world
from service_runtime.database.opening import open_database


@dataclass(frozen=True)
class DatabaseTemplate:
    """A migrated database with the state shared by the engines of its copies."""

    path: Path
    engine: Engine
    compiled: dict[Any, Any]


@cache
def template(migrations: str) -> DatabaseTemplate:
    """Returns the database created by these migrations."""
    path = scratch_folder() / f"template-{migrations.partition(':')[0]}.db"
    world = World(wall_ns=lambda: STARTS_MS * 1_000_000, nonce=stream(0, migrations).randbytes)
    with in_world(world):  # The migrations assign the database id.
        engine = open_database(f"sqlite:///{path}", migrations=migrations, start_timeout_s=10)
    engine.dispose()
    return DatabaseTemplate(path, engine, {})
