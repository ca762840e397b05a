"""Defines the plan of a simulated world. A plan is the complete input of a run, and can be stored, modified and compared.

A plan is written as JSON, with one event per line:

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

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

Setting: TypeAlias = bool | int | float | str | None
"""A value in the shape of a plan."""


class UnreadablePlan(ValueError):
    """Raised if the input is not a plan, or an event has missing or invalid parameters. The message contains the details."""


class PlannedEvent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A customer's action or a fault. Raises ValueError for a negative or infinite time, and for an empty name."""

    at_s: float
    """The seconds since the world began."""
    what: str
    """The kind of the event, such as "process.kill"."""
    where: str
    """The target, such as "broker-a", or "orders-1>broker-a" for a link in one direction."""
    for_s: float = 0.0
    """The duration in seconds; 0 for an event without duration."""
    parameters: dict[str, Any] = {}
    """Further parameters of the kind, as JSON values."""

    def __post_init__(self) -> None:
        _check_seconds("at_s", self.at_s)
        _check_seconds("for_s", self.for_s)
        if not self.what:
            raise ValueError("`what` must not be empty")
        _check_json("parameters", self.parameters)

    @property
    def ends_s(self) -> float:
        """The end of the event, in seconds since the world began."""
        return self.at_s + self.for_s

    def number(self, name: str) -> float:
        """Returns the parameter `name`. Raises UnreadablePlan if it is not a number."""
        value = self.parameters.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(name, "a number")
        return float(value)

    def whole(self, name: str) -> int:
        """Returns the parameter `name`. Raises UnreadablePlan if it is not an integer."""
        value = self.parameters.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._wrong(name, "an integer")
        return value

    def text(self, name: str) -> str:
        """Returns the parameter `name`. Raises UnreadablePlan if it is not a string."""
        value = self.parameters.get(name)
        if not isinstance(value, str):
            raise self._wrong(name, "a string")
        return value

    def as_json(self) -> dict[str, Any]:
        """Returns the event as JSON values."""
        return {**msgspec.structs.asdict(self), "at_s": float(self.at_s), "for_s": float(self.for_s)}

    def described(self) -> str:
        """Returns a readable line for the event."""
        lasting = f" for {self.for_s:g} s" if self.for_s else ""
        details = ", ".join(f"{name} {_value_text(value)}" for name, value in sorted(self.parameters.items()))
        return f"{self.at_s:g} s: {self.what} {self.where}{lasting}{f' ({details})' if details else ''}"

    def _wrong(self, name: str, wanted: str) -> UnreadablePlan:
        given = json.dumps(self.parameters[name]) if name in self.parameters else "nothing"
        return UnreadablePlan(f"{self.what} at {self.at_s:g} s: parameter {name} must be {wanted}, not {given}")


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The plan of a world. Raises ValueError if events are not ordered by time, or begin after the end."""

    seed: int
    """The seed for everything that the plan does not define, such as latencies."""
    shape: dict[str, Setting]
    """The settings of the world, such as the number of brokers."""
    events: tuple[PlannedEvent, ...]
    """The events, ordered by time."""
    ends_s: float
    """The time at which actions and faults end, in seconds since the world began. Afterwards the world must become consistent."""

    def __post_init__(self) -> None:
        _check_seconds("ends_s", self.ends_s)
        _check_json("shape", self.shape)
        for earlier, later in zip(self.events, self.events[1:], strict=False):
            if later.at_s < earlier.at_s:
                raise ValueError(f"events must be ordered by time: {later.at_s:g} s follows {earlier.at_s:g} s")
        if self.events and self.events[-1].at_s > self.ends_s:
            raise ValueError(f"events must begin before the end at {self.ends_s:g} s, not at {self.events[-1].at_s:g} s")

    def with_events(self, events: Iterable[PlannedEvent]) -> "Plan":
        """Returns a copy of the plan with these events, ordered by time. Events with equal times keep their order."""
        return msgspec.structs.replace(self, events=tuple(sorted(events, key=lambda event: event.at_s)))

    def written(self) -> str:
        """Returns the plan as JSON, with sorted keys and one event per line. Equal plans produce the same string."""
        events = ",\n".join(f"    {_json(event.as_json())}" for event in self.events)
        shape = ",\n".join(f"    {json.dumps(name)}: {_json(value)}" for name, value in sorted(self.shape.items()))
        return (
            f'{{\n  "ends_s": {_json(float(self.ends_s))},\n  "events": {_block(events, "[]")},\n'
            f'  "seed": {self.seed},\n  "shape": {_block(shape, "{}")}\n}}\n'
        )


def read_plan(text: str | bytes) -> Plan:
    """Parses a plan. Raises UnreadablePlan."""
    try:
        return msgspec.json.decode(text, type=Plan)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UnreadablePlan(f"not a plan: {error}") from None


def _block(lines: str, brackets: str) -> str:
    return f"{brackets[0]}\n{lines}\n  {brackets[1]}" if lines else brackets


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)


def _value_text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _check_seconds(name: str, seconds: float) -> None:
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ValueError(f"`{name}` must be 0 or more seconds, not {seconds}")


def _check_json(name: str, values: Mapping[str, Any]) -> None:
    try:
        _json(values)
    except (TypeError, ValueError):
        raise ValueError(f"`{name}` must contain JSON values only") from None
