"""Generates the source of a test that repeats a session's steps with the fixture `rocketmq`."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from demo.play.words import Press

_TEMPLATE: Final = Path(__file__).parent / "texts" / "own_test.txt"
_INDENT: Final = " " * 8
_LINES: Final[Mapping[str, str]] = {
    "place": "await shop.place({customer!r}, {amount!r})",
    "lose-commit": "rocketmq.lose_next_decision()",
    "hold-checks": "rocketmq.faults.are_checks_held = True",
    "release-checks": "rocketmq.release_check_backs()",
    "wait-6": "await rocketmq.advance(seconds=6)",
    "wait-60": "await rocketmq.advance(minutes=1)",
    "wait-3600": "await rocketmq.advance(hours=1)",
    "kill": "await rocketmq.crash()",
    "power": "await rocketmq.crash(power=True)",
    "restart": "await rocketmq.restart()",
    "cut": "rocketmq.cut_connections()",
    "fill-disk": "rocketmq.fill_disk()",
    "free-disk": "rocketmq.free_disk()",
    "as-apache": "rocketmq.as_apache()",
    "die-before-commit": "shop.dies_before_commit = True",
    "start-shop": "await shop.start()",
    "slow": "shop.is_slow = True",
    "refuse-credit": "shop.refuses_next_credit = True",
    "deliver-twice": "await shop.deliver_again()",
    "mistake-rollback": "shop.answers_from_memory = True",
    "mistake-no-key": "shop.has_no_unique_key = True",
    "mistake-send-inside": "shop.sends_inside = True",
}
"""Maps each button to the line of a test that does the same."""


def source_of_test(seed: int, pressed: Iterable[Press], *, orders: int, credits: int, cancelled: int = 0) -> str:
    """Returns the source of a test that repeats the presses.

    The test asserts the numbers of stored orders, of credits, and of cancelled orders.
    """
    steps = [_line(press.name, press.arguments) for press in pressed]
    lines = "\n".join(f"{_INDENT}{step}" for step in (*steps, "await rocketmq.advance(seconds=1)"))
    source = _TEMPLATE.read_text(encoding="utf-8")
    for name, value in (("seed", seed), ("orders", orders), ("credits", credits), ("cancelled", cancelled), ("steps", lines)):
        source = source.replace(f"{{{name}}}", str(value))
    return source


def _line(name: str, arguments: Mapping[str, Any]) -> str:
    return _LINES[name].format(**arguments)
