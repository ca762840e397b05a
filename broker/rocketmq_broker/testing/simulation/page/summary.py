"""Summarizes a simulated run in two sentences: the promise that was violated first, and the faults before the violation."""

from collections.abc import Mapping, Sequence
from typing import Final

from rocketmq_broker.testing.simulation.page.markup import counted, escaped, listed, moment_text
from rocketmq_broker.testing.simulation.page.world_report import BrokenPromise, ReportedEvent, ReportedKind, WorldReport

MAX_FAULTS: Final = 5
"""The maximum number of faults in the second sentence."""


def broken_sentence(world: WorldReport) -> str:
    """Returns a sentence in HTML about the first broken promise: when it broke, for which order, and what was found."""
    broken = world.first_broken
    if broken is None:
        return "Every promise held in this world."
    whose = f" for {escaped(broken.keys[0])}" if broken.keys and broken.keys[0] not in broken.text else ""
    return (
        f"The promise “<b>{_without_end(broken.promise)}</b>” broke at {moment_text(broken.at_ns)}{whose}: {_ended(broken.text)}"
    )


def faults_sentence(world: WorldReport, links: Mapping[ReportedEvent, str]) -> str:
    """Returns a sentence in HTML about the faults before the first broken promise. `links` maps shown events to HTML ids."""
    broken = world.first_broken
    faults = _faults_before(world.happenings, broken)
    when = "Before that" if broken is not None else "In it"
    if not faults:
        return f"{when}, no fault happened."
    named = [
        f'<a href="#{links[fault]}">{_named(fault)}</a>' if fault in links else _named(fault) for fault in faults[-MAX_FAULTS:]
    ]
    if len(faults) <= MAX_FAULTS:
        return f"{when}, {counted(len(faults), 'fault')} happened: {listed(named)}."
    return f"{when}, {counted(len(faults), 'fault')} happened, the last ones of them: {listed(named)}."


def beside_sentence(here: WorldReport, beside: WorldReport) -> str:
    """Returns a sentence in HTML about the run `beside`, which is the same simulated run without its last fault."""
    fault = last_fault(here, beside)
    name = f", “{_without_end(fault.text)}”" if fault is not None else ""
    broken = beside.first_broken
    if broken is None:
        return f"Without the last fault{name}, the same world keeps every promise."
    ended = f"the promise “{_without_end(broken.promise)}” breaks at {moment_text(broken.at_ns)}"
    return f"Without the last fault{name}, {ended} in the same world: {_ended(broken.text)}"


def last_fault(here: WorldReport, beside: WorldReport) -> ReportedEvent | None:
    """Returns the last fault that is missing in `beside`.

    If none is missing, returns the last fault before the broken promise. Returns None if there is no fault.
    """
    known = {(fault.process, fault.to, fault.text) for fault in _faults_before(beside.happenings, None)}
    faults = _faults_before(here.happenings, here.first_broken)
    lacking = [fault for fault in faults if (fault.process, fault.to, fault.text) not in known]
    return next(reversed(lacking or faults), None)


def _faults_before(happenings: Sequence[ReportedEvent], broken: BrokenPromise | None) -> list[ReportedEvent]:
    faults = [happening for happening in happenings if happening.kind == ReportedKind.FAULT]
    return faults if broken is None else [fault for fault in faults if fault.at_ns <= broken.at_ns]


def _named(fault: ReportedEvent) -> str:
    return f"{_without_end(fault.text)} ({moment_text(fault.at_ns)})"


def _without_end(text: str) -> str:
    return escaped(text.rstrip(" ."))


def _ended(text: str) -> str:
    return f"{_without_end(text)}."
