"""The settings of a simulated world, which stand in its plan's shape, and the names of what is in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

import msgspec

from rocketmq_broker.testing.simulation.plan import Setting, UnreadablePlan

NAME_SERVER: Final = "names"
REDIS: Final = "redis"
ORDERS_DATABASE: Final = "orders-database"
CREDITS_DATABASE: Final = "credits-database"
INVENTORY_DATABASE: Final = "inventory-database"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldShape:
    """The settings of a world. Each has the simplest value unless given."""

    brokers: int = 1
    """1, or 2: broker-a and broker-b."""
    order_services: int = 1
    """1 to 3, orders-1 to orders-3. They share one database."""
    credit_services: int = 1
    """1 to 3, credits-1 to credits-3. They share one database."""
    workers: int = 1
    """How many workers take tasks from Redis."""
    credits_by_celery: bool = False
    """Whether tasks enter the credits; otherwise the consumer does itself."""
    has_inventory: bool = False
    """Whether the inventory service, inventory-1, takes part."""
    flush_sync: bool = True
    """Whether a broker syncs a message before it answers."""
    check_interval_s: float = 10.0
    """Seconds between a broker's looks for open transactions."""
    check_immunity_s: float = 6.0
    """The age in seconds from which a broker asks for a transaction's outcome."""
    check_max: int = 15
    """How often a broker asks."""
    payment_deadline_s: float = 60.0
    """Seconds for the payment of an order to be paid later."""
    consumer_batch: int = 1
    """The most messages that a consumer handles together."""
    order_limit_cents: int = 1_000_000
    """An order above it fails in its local transaction."""

    as_apache: int = 0
    """4 or 5 for brokers that behave like Apache's of that release line; 0 for rocketmq-broker's."""

    @classmethod
    def of(cls, shape: Mapping[str, Setting]) -> WorldShape:
        """Returns the settings in a plan's shape. Raises UnreadablePlan for a name or value that no world has."""
        if unknown := shape.keys() - asdict(cls()).keys():
            raise UnreadablePlan(f"no world has the setting {', '.join(sorted(unknown))}")
        try:
            read = msgspec.convert(dict(shape), cls)
        except msgspec.ValidationError as error:
            raise UnreadablePlan(f"shape: {error}") from None
        for name, most in (("brokers", 2), ("order_services", 3), ("credit_services", 3), ("workers", 8), ("consumer_batch", 64)):
            if not 1 <= getattr(read, name) <= most:
                raise UnreadablePlan(f"shape: {name} is {getattr(read, name)}: a world has 1 to {most}")
        if read.as_apache not in (0, 4, 5):
            raise UnreadablePlan(f"shape: as_apache is {read.as_apache}: it is 0, 4 or 5")
        return read

    def as_settings(self) -> dict[str, Setting]:
        """Returns the settings as a plan's shape."""
        return asdict(self)

    @property
    def broker_names(self) -> tuple[str, ...]:
        """The names of the brokers."""
        return ("broker-a", "broker-b")[: self.brokers]

    @property
    def order_service_names(self) -> tuple[str, ...]:
        """The names of the order services."""
        return tuple(f"orders-{number}" for number in range(1, self.order_services + 1))

    @property
    def credit_service_names(self) -> tuple[str, ...]:
        """The names of the credit services."""
        return tuple(f"credits-{number}" for number in range(1, self.credit_services + 1))

    @property
    def inventory_names(self) -> tuple[str, ...]:
        """The names of the inventory services: one or none."""
        return ("inventory-1",) if self.has_inventory else ()

    @property
    def worker_names(self) -> tuple[str, ...]:
        """The names of the workers: none without Celery."""
        return tuple(f"worker-{number}" for number in range(1, self.workers + 1)) if self.credits_by_celery else ()

    @property
    def service_names(self) -> tuple[str, ...]:
        """The names of all clients of the brokers."""
        return (*self.order_service_names, *self.credit_service_names, *self.inventory_names)

    @property
    def process_names(self) -> tuple[str, ...]:
        """The names of all processes that a fault can hit."""
        return (NAME_SERVER, *self.broker_names, *self.service_names, *self.worker_names)

    @property
    def database_names(self) -> tuple[str, ...]:
        """The names of the databases."""
        return (ORDERS_DATABASE, CREDITS_DATABASE, *([INVENTORY_DATABASE] if self.has_inventory else []))


SIMPLEST: Final[Mapping[str, Setting]] = WorldShape().as_settings()
"""The settings that a failing plan is shrunk to, one by one."""
