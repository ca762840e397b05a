"""The story in two sentences: which promise broke, for which order, and after which faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rocketmq_broker.testing.simulation.page.markup import counted, escaped, listed, moment_text
from rocketmq_broker.testing.simulation.page.told import BrokenPromise, ToldHappening, ToldKind, ToldWorld

MAX_FAULTS: Final = 5
"""How many faults the second sentence names."""


def broken_sentence(world: ToldWorld) -> str:
    """Returns as HTML which promise broke first, when, and for which order."""
    broken = world.first_broken
    if broken is None:
        return "Every promise held in this world."
    whose = f" for {escaped(broken.keys[0])}" if broken.keys and broken.keys[0] not in broken.text else ""
    return (
        f"The promise “<b>{_without_end(broken.promise)}</b>” broke at {moment_text(broken.at_ns)}{whose}: {_ended(broken.text)}"
    )


def faults_sentence(world: ToldWorld, links: Mapping[ToldHappening, str]) -> str:
    """Returns as HTML the faults that came before. `links` has the id of each happening that the page shows."""
    broken = world.first_broken
    faults = _faults_before(world.happenings, broken)
    when = "Before that" if broken is not None else "In it"
    if not faults:
        return f"{when}, no fault happened."
    told = [
        f'<a href="#{links[fault]}">{_named(fault)}</a>' if fault in links else _named(fault) for fault in faults[-MAX_FAULTS:]
    ]
    if len(faults) <= MAX_FAULTS:
        return f"{when}, {counted(len(faults), 'fault')} happened: {listed(told)}."
    return f"{when}, {counted(len(faults), 'fault')} happened, the last ones of them: {listed(told)}."


def beside_sentence(here: ToldWorld, beside: ToldWorld) -> str:
    """Returns as HTML what the last fault changed."""
    fault = last_fault(here, beside)
    name = f", “{_without_end(fault.text)}”" if fault is not None else ""
    broken = beside.first_broken
    if broken is None:
        return f"Without the last fault{name}, the same world keeps every promise."
    ended = f"the promise “{_without_end(broken.promise)}” breaks at {moment_text(broken.at_ns)}"
    return f"Without the last fault{name}, {ended} in the same world: {_ended(broken.text)}"


def last_fault(here: ToldWorld, beside: ToldWorld) -> ToldHappening | None:
    """Returns the fault that the world beside lacks; the last one before the broken promise if the worlds do not tell."""
    known = {(fault.process, fault.to, fault.text) for fault in _faults_before(beside.happenings, None)}
    faults = _faults_before(here.happenings, here.first_broken)
    lacking = [fault for fault in faults if (fault.process, fault.to, fault.text) not in known]
    return next(reversed(lacking or faults), None)


def _faults_before(happenings: Sequence[ToldHappening], broken: BrokenPromise | None) -> list[ToldHappening]:
    faults = [happening for happening in happenings if happening.kind == ToldKind.FAULT]
    return faults if broken is None else [fault for fault in faults if fault.at_ns <= broken.at_ns]


def _named(fault: ToldHappening) -> str:
    return f"{_without_end(fault.text)} ({moment_text(fault.at_ns)})"


def _without_end(text: str) -> str:
    return escaped(text.rstrip(" ."))


def _ended(text: str) -> str:
    return f"{_without_end(text)}."
