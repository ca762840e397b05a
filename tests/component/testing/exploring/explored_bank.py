"""Explored tests in a module, so that other processes can import them."""

import os
from pathlib import Path

from rocketmq_broker.testing.exploring import ExploredWorld, explore
from tests.component.testing.exploring.small_bank import Bank

PID_FILE = "FILE_FOR_PROCESS_ID"


@explore()
def each_order_is_credited_once(world: ExploredWorld) -> None:
    """Passes in each world."""
    bank = Bank(world)
    world.run(shop=bank.shop, bank=bank.bank)
    bank.judge()


@explore()
def no_order_is_credited(world: ExploredWorld) -> None:
    """Fails in each world with an order."""
    bank = Bank(world)
    world.run(shop=bank.shop, bank=bank.bank)
    assert not bank.credits, "an order is credited"


@explore()
def ends_its_process(world: ExploredWorld) -> None:
    """Ends the process that runs its world."""
    world.run(shop=Bank(world).shop, until=lambda: os._exit(7))


@explore()
def needs_a_fixture(world: ExploredWorld, tmp_path: object) -> None:
    """Needs pytest."""


@explore()
def ends_its_process_early(world: ExploredWorld) -> None:
    """Ends its process before the world runs."""
    os._exit(7)


@explore()
def fails_early(world: ExploredWorld) -> None:
    """Fails before the world runs."""
    raise ValueError("no bank")


@explore()
def exits_when_it_has_run(world: ExploredWorld) -> None:
    """Raises SystemExit after the world has run."""
    world.run(shop=Bank(world).shop)
    raise SystemExit("order:key:1 \udce9")


@explore()
def never_ends_with_a_database(world: ExploredWorld) -> None:
    """Creates a database, writes its process id to the file named by PID_FILE, and never ends."""
    world.database("orders")
    Path(os.environ[PID_FILE]).write_text(str(os.getpid()))
    world.run(shop=Bank(world).shop)
    while True:
        pass
