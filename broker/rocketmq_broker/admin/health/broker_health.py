"""Examines the reachability of a broker, its store, and the messages that need an operator."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from rocketmq_broker.admin.broker_requests.brokers import BrokerAddress
from rocketmq_broker.admin.broker_requests.figures import runtime_info, settings
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.admin.errors import CannotAsk, NotSupported, Refused
from rocketmq_broker.admin.health.advice import about_connection, about_refusal
from rocketmq_broker.admin.health.clocks import clock
from rocketmq_broker.admin.health.finding import HealthFinding, fine, wrong
from rocketmq_broker.admin.health.reach import announced
from rocketmq_broker.admin.health.versions import ProgramVersion, too_old, version_text
from rocketmq_broker.admin.output.durations import duration_text
from rocketmq_broker.admin.output.numbers import counted, is_number
from rocketmq_broker.message import permissions
from rocketmq_broker.protocol.bodies.parked_admin import ParkedCounts
from rocketmq_broker.protocol.bodies.transaction_admin import TransactionInfo, TransactionList
from rocketmq_broker.protocol.headers.transaction_admin import ListPendingTransactionsRequestHeader

_WARNING_PERCENT: Final = 90
"""The default of diskSpaceWarningLevelRatio in percent, for brokers that do not report the setting."""
_YOUNG_MS: Final = 60_000
_MAX_PENDING: Final = 1000
"""The maximum number of pending transactions to examine, oldest first."""


class BrokerFound(NamedTuple):
    """The findings about one broker."""

    findings: list[HealthFinding]
    version: ProgramVersion | None
    """The broker's version; None if the broker did not report it."""


def subject_of(broker: BrokerAddress) -> str:
    """Returns the name that findings use for a broker."""
    return f"broker {broker.name} at {broker.address}" if broker.name else f"broker at {broker.address}"


async def examine_broker(
    requests: BrokerRequests, broker: BrokerAddress, *, is_remote: bool, clock_ms: Callable[[], int]
) -> BrokerFound:
    """Examines a broker and returns the findings.

    `is_remote` is True if the broker's name server runs on another machine, and `clock_ms` is this machine's clock.
    """
    subject = subject_of(broker)
    try:
        configured = await settings(requests)
        asked_ms = clock_ms()
        figures = await runtime_info(requests)
        answered_ms = clock_ms()
    except CannotAsk as error:
        what = f"It cannot be reached at the address that it announces: {error}."
        return BrokerFound([wrong(subject, what, about_connection(error) or _REACH)], None)
    except Refused as error:
        return BrokerFound([wrong(subject, f"It refuses to report its statistics: {error}.", about_refusal(str(error)))], None)
    number = figures.get("brokerVersion", "")
    version = ProgramVersion(subject, int(number)) if is_number(number) else None
    findings = [
        _identity(subject, figures, answered_ms, version),
        *(too_old(subject, version.number) if version is not None else []),
        clock(subject, figures, asked_ms, answered_ms),
        *announced(subject, broker, is_remote=is_remote),
        _disk(subject, figures, configured),
        *_refusing(subject, configured),
        *_refusing_pops(subject, figures),
        *await _waiting(subject, requests),
    ]
    return BrokerFound(findings, version)


_REACH: Final = (
    "Start the broker, or set brokerIP1 to an address that clients can reach and bindAddress so that it listens there. "
    "A name server removes an unreachable broker after two minutes."
)


def _identity(subject: str, figures: Mapping[str, str], now_ms: int, version: ProgramVersion | None) -> HealthFinding:
    described = figures.get("brokerVersionDesc", "an unknown release")
    booted = figures.get("bootTimestamp", "")
    since = f", up for {duration_text(max(0, now_ms - int(booted)))}" if is_number(booted) else ""
    text = version_text(version.number) if version is not None else described
    return fine(subject, f"It answers and uses the protocol of {described}{since}.", version=text)


def _disk(subject: str, figures: Mapping[str, str], configured: Mapping[str, str]) -> HealthFinding:
    try:
        used_percent = float(figures["commitLogDiskRatio"]) * 100
    except (KeyError, ValueError):
        return fine(subject, "It does not report its disk usage.")
    level = configured.get("diskSpaceWarningLevelRatio", "")
    max_percent = int(level) if is_number(level) else _WARNING_PERCENT
    if used_percent < max_percent:
        return fine(subject, f"Its disk is {used_percent:.0f} % full; above {max_percent} % it would refuse messages.")
    what = f"Its disk is {used_percent:.0f} % full: above {max_percent} % it refuses new messages."
    return wrong(subject, what, "Free space on the disk of the store, or lower fileReservedTime; it then accepts messages again.")


def _refusing(subject: str, configured: Mapping[str, str]) -> Iterator[HealthFinding]:
    permission = configured.get("brokerPermission", "")
    if is_number(permission) and not permissions.is_writeable(int(permission)):
        what = f"It refuses all messages (brokerPermission={permission})."
        yield wrong(subject, what, "Set brokerPermission=6 unless this is intended.")
    if is_number(permission) and not permissions.is_readable(int(permission)):
        what = f"It refuses all pulls (brokerPermission={permission})."
        yield wrong(subject, what, "Set brokerPermission=6 unless this is intended.")
    if configured.get("rejectTransactionMessage") == "true":
        what = "It refuses half messages (rejectTransactionMessage=true)."
        yield wrong(subject, what, "Set rejectTransactionMessage=false unless this is intended.")


def _refusing_pops(subject: str, figures: Mapping[str, str]) -> Iterator[HealthFinding]:
    if refusal := figures.get("popMessageRefusal"):
        what_to_do = (
            "Find out why these consumers do not acknowledge: rocketmq-admin groups shows what each has in hand. Messages are "
            "delivered again, and no longer count, when their invisible times end."
        )
        yield wrong(subject, f"It refuses pops: {refusal}.", what_to_do)


async def _waiting(subject: str, requests: BrokerRequests) -> list[HealthFinding]:
    try:
        pending = await requests.list_pending(ListPendingTransactionsRequestHeader(max_count=_MAX_PENDING))
        parked = await requests.count_parked()
    except NotSupported:
        what = "It does not count pending transactions, discarded messages and dead letters, as it is an Apache broker."
        return [fine(subject, what)]
    except CannotAsk as error:
        return [wrong(subject, f"It does not report messages that need an operator: {error}.", "Run doctor again.")]
    except Refused as error:
        return [wrong(subject, f"It does not report messages that need an operator: {error}.", about_refusal(str(error)))]
    return [_pending(subject, pending), _discarded(subject, parked), _dead_letters(subject, parked)]


def _pending(subject: str, pending: TransactionList) -> HealthFinding:
    abandoned = [info for info in pending.transactions if _is_abandoned(info)]
    count = counted(pending.total, "pending transaction")
    if not abandoned:
        return fine(subject, f"It has {count}.")
    groups = ", ".join(sorted({info.producer_group for info in abandoned}))
    what = f"It has {count}; {len(abandoned)} of them cannot be checked back, because no producer of {groups} is online."
    return wrong(subject, what, "Start a producer of each group, or decide by hand: rocketmq-admin pending, then decide.")


def _is_abandoned(info: TransactionInfo) -> bool:
    """Returns whether a pending transaction is older than a minute and has no producer online.

    Producers send a heartbeat every 30 s.
    """
    return info.is_producer_online is False and (info.age_ms or 0) >= _YOUNG_MS


def _discarded(subject: str, parked: ParkedCounts) -> HealthFinding:
    count = sum(parked.discarded.values())
    if not count:
        return fine(subject, "It has no discarded messages that need an operator.")
    what = f"{counted(count, 'discarded message')} of {', '.join(sorted(parked.discarded))} need an operator."
    return wrong(subject, what, "List them with rocketmq-admin discarded, then use rocketmq-admin resume.")


def _dead_letters(subject: str, parked: ParkedCounts) -> HealthFinding:
    count = sum(parked.dead_letters.values())
    if not count:
        return fine(subject, "It has no dead letters that need an operator.")
    what = f"{counted(count, 'dead letter')} of {', '.join(sorted(parked.dead_letters))} need an operator."
    return wrong(subject, what, "List them with rocketmq-admin dead-letters list, then retry or dismiss them.")
