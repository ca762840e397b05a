"""The happenings of a history as those of a page: a link becomes an arrow, and each kind of fault becomes a fault."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from rocketmq_broker.testing.simulation.history import RecordedHappening
from rocketmq_broker.testing.simulation.page.told import ToldHappening, ToldKind

_LINK: Final = " -> "
"""Between the two processes in the name of a link."""
_WORLD: Final = "world"
"""The name under which the world itself notes what happens."""


def told_happenings(happenings: Iterable[RecordedHappening], fault_kinds: Collection[str] = ()) -> tuple[ToldHappening, ...]:
    """Returns the happenings for a page. Those of `fault_kinds` are told as faults, beside those whose kind is `fault`."""
    return tuple(_told(happening, fault_kinds) for happening in happenings)


def _told(happening: RecordedHappening, fault_kinds: Collection[str]) -> ToldHappening:
    process, separator, receiver = happening.process.partition(_LINK)
    return ToldHappening(
        happening.at_ns,
        "" if process == _WORLD else process,
        ToldKind.FAULT if happening.kind in fault_kinds else happening.kind,
        happening.text,
        happening.keys,
        receiver if separator else happening.to,
    )
