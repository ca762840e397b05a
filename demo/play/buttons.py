"""The buttons of the page, keyed by the names that the page's URL contains."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from demo.play.system import PlayedSystem


@dataclass(frozen=True, slots=True)
class Button:
    """A button of the page, with its action and its arguments."""

    group: str
    """`order`, `time`, `broker`, `service` or `mistake`."""
    label: str
    press: Callable[..., Coroutine[Any, Any, None] | None]
    """Does what the button says. It gets the system and the arguments. A coroutine runs on its event loop."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """The arguments with their defaults."""
    is_enabled: Callable[[PlayedSystem], bool] = lambda system: True
    is_on: Callable[[PlayedSystem], bool] = lambda system: False
    """Whether the button's effect lasts, or waits for the next order."""


def _runs(system: PlayedSystem) -> bool:
    return system.rocketmq.is_running


def _is_down(system: PlayedSystem) -> bool:
    return not system.rocketmq.is_running


def _has_shop(system: PlayedSystem) -> bool:
    return system.orders.is_running


def _waiting(seconds: int) -> Callable[[PlayedSystem], Coroutine[Any, Any, None]]:
    return lambda system: system.rocketmq.advance(seconds=seconds)


def _place(system: PlayedSystem, customer: str, amount: int) -> None:
    system.orders.place(customer, amount)


def _hold_checks(system: PlayedSystem) -> None:
    system.rocketmq.faults.are_checks_held = True


def _die_before_commit(system: PlayedSystem) -> None:
    system.orders.dies_before_commit = True


def _be_slow(system: PlayedSystem) -> None:
    system.orders.is_slow = True


async def _play_apache(system: PlayedSystem) -> None:
    system.rocketmq.as_apache()
    system.is_apache = True


def _refuse_credit(system: PlayedSystem) -> None:
    system.credits.refuses = True


def _forget(system: PlayedSystem) -> None:
    system.orders.forgets = True


def _send_inside(system: PlayedSystem) -> None:
    system.orders.sends_inside = True


BUTTONS: Final[Mapping[str, Button]] = {
    "place": Button(
        "order", "Place an order", _place, {"customer": "alice", "amount": 2599}, _has_shop
    ),
    "lose-commit": Button(
        "broker", "Lose the next COMMIT or ROLLBACK",
        lambda system: system.rocketmq.lose_next_decision(),
        is_on=lambda system: system.rocketmq.faults.decisions_to_lose > 0,
    ),
    "hold-checks": Button(
        "broker", "Hold the check-backs", _hold_checks,
        is_enabled=lambda system: _runs(system) and not system.rocketmq.faults.are_checks_held,
        is_on=lambda system: system.rocketmq.faults.are_checks_held,
    ),
    "release-checks": Button(
        "broker", "Release the check-backs", lambda system: system.rocketmq.release_check_backs(),
        is_enabled=lambda system: system.rocketmq.faults.are_checks_held,
    ),
    "wait-6": Button("time", "Let 6 seconds pass", _waiting(6)),
    "wait-60": Button("time", "Let a minute pass", _waiting(60)),
    "wait-3600": Button("time", "Let an hour pass", _waiting(3600)),
    "kill": Button("broker", "Kill the broker", lambda system: system.rocketmq.crash(), is_enabled=_runs),
    "power": Button(
        "broker", "Fail the power of the broker", lambda system: system.rocketmq.crash(power=True),
        is_enabled=_runs,
    ),
    "restart": Button(
        "broker", "Start the broker again", lambda system: system.rocketmq.restart(),
        is_enabled=_is_down,
    ),
    "cut": Button(
        "broker", "Cut all connections", lambda system: system.rocketmq.cut_connections(), is_enabled=_runs
    ),
    "fill-disk": Button(
        "broker", "Fill the broker's disk", lambda system: system.rocketmq.fill_disk(),
        is_enabled=lambda system: _runs(system) and not system.rocketmq.is_disk_full,
        is_on=lambda system: system.rocketmq.is_disk_full,
    ),
    "free-disk": Button(
        "broker", "Free the broker's disk", lambda system: system.rocketmq.free_disk(),
        is_enabled=lambda system: system.rocketmq.is_disk_full,
    ),
    "as-apache": Button(
        "broker", "Let the broker behave like Apache's", _play_apache,
        is_enabled=lambda system: _runs(system) and not system.is_apache, is_on=lambda system: system.is_apache,
    ),
    "die-before-commit": Button(
        "service", "Let the order service die at the next order, before COMMIT",
        _die_before_commit, is_enabled=lambda system: _has_shop(system) and not system.orders.dies_before_commit,
        is_on=lambda system: system.orders.dies_before_commit,
    ),
    "start-shop": Button(
        "service", "Start the order service again", lambda system: system.orders.start(),
        is_enabled=lambda system: not _has_shop(system),
    ),
    "slow": Button(
        "service", "Let the next local transaction start 8 s late", _be_slow,
        is_enabled=lambda system: _has_shop(system) and not system.orders.is_slow,
        is_on=lambda system: system.orders.is_slow,
    ),
    "refuse-credit": Button(
        "service", "Let the credit service refuse the next credit", _refuse_credit,
        is_enabled=lambda system: not (system.credits.refuses or system.credits.has_no_key),
        is_on=lambda system: system.credits.refuses,
    ),
    "deliver-twice": Button(
        "service", "Deliver all messages to the credit service again",
        lambda system: system.deliver_again(), is_enabled=_runs,
    ),
    "mistake-rollback": Button(
        "mistake", "Answer check-backs from memory, by default with ROLLBACK", _forget,
        is_enabled=lambda system: not system.orders.forgets, is_on=lambda system: system.orders.forgets,
    ),
    "mistake-no-key": Button(
        "mistake", "Remove the ledger's unique key", lambda system: system.credits.lose_key(),
        is_enabled=lambda system: not system.credits.has_no_key, is_on=lambda system: system.credits.has_no_key,
    ),
    "mistake-send-inside": Button(
        "mistake", "Send the message inside the database transaction", _send_inside,
        is_enabled=lambda system: not system.orders.sends_inside, is_on=lambda system: system.orders.sends_inside,
    ),
}  # fmt: skip
"""The buttons by name, in the order in which the page shows them."""

DEFAULTS: Final = {name: button.arguments for name, button in BUTTONS.items()}
"""Maps each button to its arguments with their defaults."""
