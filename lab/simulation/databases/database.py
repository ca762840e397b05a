"""The databases of the shop in a simulation. The engines are those of production, with faults added."""

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

from sqlalchemy import URL, Engine, QueuePool

from credit_service.adapters.tables import MIGRATIONS as CREDIT_MIGRATIONS
from inventory_service.adapters.tables import MIGRATIONS as INVENTORY_MIGRATIONS
from lab.simulation.databases.rules import OrderRules
from lab.simulation.databases.shop_rows import ruled_rows, shop_rows
from lab.simulation.databases.template import template
from order_service.adapters.tables import MIGRATIONS as ORDER_MIGRATIONS
from rocketmq_broker.testing.simulation.databases.connection import Parameters
from rocketmq_broker.testing.simulation.databases.database import Connect, SimulatedDatabase
from rocketmq_broker.testing.simulation.databases.gate import RowNote
from rocketmq_broker.testing.simulation.history import History
from rocketmq_broker.world import Chance
from service_runtime.database.engine import prepare_sqlite

MIGRATIONS_OF: Final = {
    "orders-database": ORDER_MIGRATIONS,
    "credits-database": CREDIT_MIGRATIONS,
    "inventory-database": INVENTORY_MIGRATIONS,
}
"""Maps the name of each database to its migrations."""

_WAITING: Final = "SELECT 1 FROM rocketmq_inbox WHERE consumer = ? AND status IN ('NEW', 'FAILED') LIMIT 1"


class ShopDatabase(SimulatedDatabase):
    """A database of the shop: with its tables, with the engines of `service_runtime`, and with rules about orders."""

    def __init__(
        self,
        name: str,
        history: History,
        chance: Chance,
        *,
        loop: asyncio.AbstractEventLoop,
        on_fault: Callable[[str], object] = lambda word: None,
        migrations: str | None = None,
        content: Path | None = None,
        is_replica: bool = False,
    ) -> None:
        """Creates the database. `name` is a key of MIGRATIONS_OF, unless `migrations` is given.

        `content` is a file with the initial rows. Without it, the tables have no rows.
        """
        self._migrations = migrations or MIGRATIONS_OF[name]
        self._template = template(self._migrations)
        self.rules = OrderRules(loop.time, lambda: on_fault("rule"))
        super().__init__(
            name, history, chance, loop=loop, on_fault=on_fault, content=content or self._template.path, is_replica=is_replica
        )

    def has_waiting(self, consumer: str) -> bool:
        """Returns True if the table `rocketmq_inbox` contains waiting messages of the consumer. Faults do not affect it."""
        return self.reader().execute(_WAITING, (consumer,)).fetchone() is not None

    def replica(self, *, is_promoted: bool = False) -> "ShopDatabase":
        """Returns a copy with the current rows, like a replica that gets no more changes. It is read-only unless promoted."""
        file, path = self._file, self.path.with_suffix(".copy")
        with sqlite3.connect(path) as to:
            self.reader().backup(to)
        to.close()
        copy = ShopDatabase(
            f"{self.name}-copy", file.history, file.chance, loop=file.loop, migrations=self._migrations, content=path,
            is_replica=not is_promoted,
        )  # fmt: skip
        path.unlink()
        return copy

    def end_faults(self) -> None:
        """Ends all faults and rules, and releases the other writer's lock."""
        super().end_faults()
        self.rules.end_all()

    def new_engine(self, connect: Connect) -> Engine:
        """Returns an engine like those of `service_runtime.database.engine`."""
        pool = QueuePool(cast(Callable[[], Any], connect), pool_size=20, max_overflow=-1, dialect=self._template.engine.dialect)
        engine = Engine(
            pool,
            self._template.engine.dialect,
            URL.create("sqlite", database=str(self.path)),
            hide_parameters=True,
            execution_options={"compiled_cache": self._template.compiled},
        )
        prepare_sqlite(engine)
        return engine

    def check(self, sql: str, parameters: Parameters) -> None:
        """Raises the driver's error if a rule refuses a row."""
        self.rules.check(ruled_rows(sql, parameters))

    def rows_of(self, sql: str, parameters: Parameters) -> list[RowNote] | None:
        """Returns the notes about the shop's rows."""
        return shop_rows(sql, parameters)
