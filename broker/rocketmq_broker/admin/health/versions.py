"""Determines the RocketMQ releases of programs, and finds old or mismatched ones (RocketMQ's MQVersion).

Each frame contains the sender's version as a number. Since 4.0.0, each release has two numbers, of which the first is for the
snapshot. Each minor version has ten releases.

    212 4.0.0-SNAPSHOT | 213 4.0.0 | 214 4.0.1-SNAPSHOT | ... | 407 4.9.7 | ... | 413 5.0.0 | ... | 479 5.3.3
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from rocketmq_broker.admin.health.finding import HealthFinding, fine, wrong

_FIRST: Final = 212
_NUMBERS_TO_A_RELEASE: Final = 2


class Version(NamedTuple):
    """A release of RocketMQ."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


OLDEST: Final = Version(4, 3, 0)
"""The first release with check-backs."""


class ProgramVersion(NamedTuple):
    """A program and its version number."""

    subject: str
    number: int


def version_of(number: int) -> Version | None:
    """Returns the release with the number; None for releases before 4.0.0, which are numbered differently."""
    if number < _FIRST:
        return None
    release = (number - _FIRST) // _NUMBERS_TO_A_RELEASE
    return Version(4 + release // 100, release // 10 % 10, release % 10)


def version_text(number: int) -> str:
    """Returns the name of the release with the number."""
    version = version_of(number)
    return f"a release before 4.0.0 (version number {number})" if version is None else str(version)


def is_too_old(number: int) -> bool:
    """Returns whether the version does not support check-backs."""
    return (version_of(number) or Version(0, 0, 0)) < OLDEST


def too_old(subject: str, number: int) -> list[HealthFinding]:
    """Returns a problem if the version of a broker or name server is too old."""
    if not is_too_old(number):
        return []
    what = f"It is {version_text(number)}: transactional messages with check-backs need {OLDEST}."
    return [wrong(subject, what, "Use 4.9.7 or newer: this tool and its client use the protocol of 4.9.7.")]


def far_apart(broker: ProgramVersion, name_servers: Sequence[ProgramVersion]) -> list[HealthFinding]:
    """Returns a problem for each name server whose major version is older than the broker's.

    Such a name server cannot register the broker.
    """
    of_broker = version_of(broker.number)
    findings = []
    for name_server in name_servers:
        of_name_server = version_of(name_server.number)
        if of_broker is None or of_name_server is None or of_broker.major <= of_name_server.major:
            continue
        what = f"It is {of_broker}, and {name_server.subject} is {of_name_server}: too far apart."
        what_to_do = f"Upgrade name servers before brokers: upgrade this one to {of_broker.major}.x."
        findings.append(wrong(broker.subject, what, what_to_do))
    return findings


def clients_found(subject: str, clients: Sequence[ProgramVersion]) -> list[HealthFinding]:
    """Returns a summary of the versions of a broker's clients."""
    if not clients:
        return [fine(subject, "No client is connected.")]
    counts = Counter(version_text(client.number) for client in clients)
    versions = ", ".join(f"{count} of {version}" for version, count in sorted(counts.items()))
    old = sorted({client.subject for client in clients if is_too_old(client.number)})
    if not old:
        return [fine(subject, f"Its clients are {versions}.")]
    what = f"Its clients are {versions}; those of {', '.join(old)} are older than {OLDEST} and do not answer check-backs."
    return [wrong(subject, what, f"Upgrade them: transactional messages need a client of {OLDEST} or newer.")]
