"""The settings of a simulation, which a plan stores as its shape, and the names of the simulation's parts."""

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
_MAX: Final = {
    "brokers": 2, "order_services": 3, "credit_services": 3, "workers": 8, "drain_batch": 256, "max_tries": 16, "pull_limit": 32,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldShape:
    """The settings of a simulation. The defaults are the simplest values."""

    brokers: int = 1
    """The number of brokers: 1, or 2 (broker-a and broker-b)."""
    order_services: int = 1
    """The number of order services, 1 to 3: orders-1 to orders-3. They share one database."""
    credit_services: int = 1
    """The number of credit services, 1 to 3: credits-1 to credits-3. They share one database."""
    workers: int = 1
    """The number of credit workers, 1 to 8: worker-1 to worker-8. Each has two processes."""
    drain_batch: int = 256
    """The maximum number of messages that a worker credits in one database transaction."""
    max_tries: int = 16
    """The number of counted failures after which an order is refused or its message is parked."""
    cancels_refused: bool = True
    """True if the order of a message that fails too often is cancelled. Otherwise its message is parked."""
    saves_positions: bool = False
    """True if the consumers of credits and shipments also save their positions in their databases."""
    has_inventory: bool = False
    """True if the simulation has an inventory service, inventory-1."""
    flush_sync: bool = True
    """True if brokers flush a message before they answer."""
    check_interval_s: float = 10.0
    """The interval in seconds at which a broker checks pending transactions."""
    check_immunity_s: float = 6.0
    """The age in seconds after which a broker sends a check-back."""
    check_max: int = 15
    """The maximum number of check-backs for each transaction."""
    payment_deadline_s: float = 60.0
    """The time in seconds after which an unpaid order expires. It applies to orders that are paid later."""
    order_limit_cents: int = 1_000_000
    """The maximum total of an order in cents. The local transaction of a larger order fails."""
    pull_limit: int = 32
    """The maximum number of messages that a broker returns for one pull."""
    send_timeout_s: float = 3.0
    """The time in seconds after which a service stops to send a message."""

    as_apache: int = 0
    """The version of Apache RocketMQ that the brokers imitate, 4 or 5. 0 for rocketmq-broker."""

    @classmethod
    def of(cls, shape: Mapping[str, Setting]) -> "WorldShape":
        """Reads the settings from a plan's shape. Raises UnreadablePlan for unknown names or values."""
        if unknown := shape.keys() - asdict(cls()).keys():
            raise UnreadablePlan(f"shape: unknown setting {', '.join(sorted(unknown))}")
        try:
            read = msgspec.convert(dict(shape), cls)
        except msgspec.ValidationError as error:
            raise UnreadablePlan(f"shape: {error}") from None
        for name, most in _MAX.items():
            if not 1 <= getattr(read, name) <= most:
                raise UnreadablePlan(f"shape: {name} must be between 1 and {most}, not {getattr(read, name)}")
        if read.as_apache not in (0, 4, 5):
            raise UnreadablePlan(f"shape: as_apache must be 0, 4 or 5, not {read.as_apache}")
        return read

    def as_settings(self) -> dict[str, Setting]:
        """Returns the settings as the shape of a plan."""
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
        """The names of the inventory services. Empty without an inventory service."""
        return ("inventory-1",) if self.has_inventory else ()

    @property
    def worker_names(self) -> tuple[str, ...]:
        """The names of the credit workers."""
        return tuple(f"worker-{number}" for number in range(1, self.workers + 1))

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
"""The settings to which a failed plan is shrunk."""
