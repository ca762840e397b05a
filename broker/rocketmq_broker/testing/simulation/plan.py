"""A plan: everything that a simulated world is played from, as data that can be kept, changed and compared.

Its text is JSON with one event a line:

    {
      "ends_s": 120.0,
      "events": [
        {"at_s": 3.5, "for_s": 0.0, "parameters": {"order": 1}, "what": "order.place", "where": "ana"},
        {"at_s": 4.0, "for_s": 10.0, "parameters": {}, "what": "process.kill", "where": "broker-a"}
      ],
      "seed": 4711,
      "shape": {
        "brokers": 1
      }
    }
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

Setting: TypeAlias = bool | int | float | str | None
"""A value of a plan's shape."""


class UnreadablePlan(ValueError):
    """A text is no plan, or an event of a plan lacks what its kind needs; the text says where."""


class PlannedEvent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A customer's action or a fault. Raises ValueError for a time that is negative or not finite, and for an empty name."""

    at_s: float
    """Seconds since the world began."""
    what: str
    """Its kind, such as "process.kill"."""
    where: str
    """Its target: "broker-a", or "orders-1>broker-a" for a link in one direction."""
    for_s: float = 0.0
    """The seconds that it lasts; 0 if it has no duration."""
    parameters: dict[str, Any] = {}
    """What else its kind needs: values that JSON can hold."""

    def __post_init__(self) -> None:
        _check_seconds("at_s", self.at_s)
        _check_seconds("for_s", self.for_s)
        if not self.what:
            raise ValueError("`what` is empty")
        _check_json("parameters", self.parameters)

    @property
    def ends_s(self) -> float:
        """The seconds since the world began at which it is over."""
        return self.at_s + self.for_s

    def number(self, name: str) -> float:
        """Returns a parameter that is a number. Raises UnreadablePlan."""
        value = self.parameters.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(name, "a number")
        return float(value)

    def whole(self, name: str) -> int:
        """Returns a parameter that is a whole number. Raises UnreadablePlan."""
        value = self.parameters.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._wrong(name, "a whole number")
        return value

    def text(self, name: str) -> str:
        """Returns a parameter that is a text. Raises UnreadablePlan."""
        value = self.parameters.get(name)
        if not isinstance(value, str):
            raise self._wrong(name, "a text")
        return value

    def claim(self, name: str) -> bool:
        """Returns a parameter that is true or false; False where it is not given. Raises UnreadablePlan."""
        value = self.parameters.get(name, False)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def as_json(self) -> dict[str, Any]:
        """Returns the event as values that JSON can hold."""
        return {**msgspec.structs.asdict(self), "at_s": float(self.at_s), "for_s": float(self.for_s)}

    def told(self) -> str:
        """Returns the event in one line for people."""
        lasting = f" for {self.for_s:g} s" if self.for_s else ""
        details = ", ".join(f"{name} {_told_value(value)}" for name, value in sorted(self.parameters.items()))
        return f"{self.at_s:g} s: {self.what} {self.where}{lasting}{f' ({details})' if details else ''}"

    def _wrong(self, name: str, wanted: str) -> UnreadablePlan:
        given = json.dumps(self.parameters[name]) if name in self.parameters else "nothing"
        return UnreadablePlan(f"{self.what} at {self.at_s:g} s needs the parameter {name}, {wanted}: {given} is given")


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A world's plan. Raises ValueError if events are not in the order of their times, or begin after the end."""

    seed: int
    """It chooses what the plan leaves open, such as latencies."""
    shape: dict[str, Setting]
    """The settings of the world: how many brokers it has, and the like."""
    events: tuple[PlannedEvent, ...]
    """In the order of their times."""
    ends_s: float
    """Seconds since the world began: customers act no more, faults are over, and what is left must come right."""

    def __post_init__(self) -> None:
        _check_seconds("ends_s", self.ends_s)
        _check_json("shape", self.shape)
        for earlier, later in zip(self.events, self.events[1:], strict=False):
            if later.at_s < earlier.at_s:
                raise ValueError(f"events are not in the order of their times: {later.at_s:g} s follows {earlier.at_s:g} s")
        if self.events and self.events[-1].at_s > self.ends_s:
            raise ValueError(f"an event begins at {self.events[-1].at_s:g} s, after the end at {self.ends_s:g} s")

    def with_events(self, events: Iterable[PlannedEvent]) -> Plan:
        """Returns the plan with these events in place of its own, in the order of their times. Equal times keep their order."""
        return msgspec.structs.replace(self, events=tuple(sorted(events, key=lambda event: event.at_s)))

    def written(self) -> str:
        """Returns the plan as JSON: sorted keys, one event a line. Equal plans give equal texts."""
        events = ",\n".join(f"    {_json(event.as_json())}" for event in self.events)
        shape = ",\n".join(f"    {json.dumps(name)}: {_json(value)}" for name, value in sorted(self.shape.items()))
        return (
            f'{{\n  "ends_s": {_json(float(self.ends_s))},\n  "events": {_block(events, "[]")},\n'
            f'  "seed": {self.seed},\n  "shape": {_block(shape, "{}")}\n}}\n'
        )


def read_plan(text: str | bytes) -> Plan:
    """Returns the plan that a text holds. Raises UnreadablePlan."""
    try:
        return msgspec.json.decode(text, type=Plan)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UnreadablePlan(f"this is no plan: {error}") from None


def _block(lines: str, brackets: str) -> str:
    return f"{brackets[0]}\n{lines}\n  {brackets[1]}" if lines else brackets


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)


def _told_value(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _check_seconds(name: str, seconds: float) -> None:
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ValueError(f"`{name}` is {seconds}: it must be a number of seconds, 0 or more")


def _check_json(name: str, values: Mapping[str, Any]) -> None:
    try:
        _json(values)
    except (TypeError, ValueError):
        raise ValueError(f"`{name}` holds a value that JSON cannot hold") from None
