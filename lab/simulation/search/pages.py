"""Creates the page and the picture of a simulation."""

from __future__ import annotations

import json
from typing import Final

from lab.simulation.search.worlds import WorldEnd
from rocketmq_broker.testing.simulation.page import BrokenPromise, ReportedEvent, WorldReport, page_of, picture_of

_LANES: Final = ("customer", "orders", "names", "broker", "credits", "redis", "inventory", "disk")
"""The order of lanes from left to right, by prefixes of their names. Other lanes follow."""


def page_text(end: WorldEnd, beside: WorldEnd | None, how_to_repeat: str) -> str:
    """Returns the page of a simulation as HTML. `beside` is the same simulation without its last fault."""
    return page_of(world_report(end, how_to_repeat), None if beside is None else world_report(beside, ""))


def picture_text(end: WorldEnd) -> str:
    """Returns the picture of a simulation as SVG, for documents."""
    return picture_of(world_report(end, ""))


def world_report(end: WorldEnd, how_to_repeat: str) -> WorldReport:
    """Returns the data that the page of a simulation displays."""
    happenings = tuple(ReportedEvent(it.at_ns, it.process, it.kind, it.text, it.keys, it.to) for it in end.happenings)
    last_ns = max([int(end.simulated_s * 1e9), *(it.at_ns for it in happenings)])
    return WorldReport(
        seed=end.seed,
        title=end.broken[0].promise.rstrip(".") if end.broken else "Every promise held",
        lanes=_lanes(happenings),
        happenings=happenings,
        violations=tuple(
            BrokenPromise(it.promise, it.text, last_ns if it.at_ns is None else it.at_ns, it.keys) for it in end.broken
        ),
        digest=end.digest,
        plan=json.loads(end.plan.written()),
        how_to_repeat=how_to_repeat,
    )


def _lanes(happenings: tuple[ReportedEvent, ...]) -> tuple[str, ...]:
    names = dict.fromkeys(name for it in happenings for name in (it.process, it.to) if name)
    return tuple(sorted(names, key=_place))


def _place(name: str) -> tuple[int, str]:
    return next((number for number, begin in enumerate(_LANES) if name.startswith(begin)), len(_LANES)), name
