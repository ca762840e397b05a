"""The audit file of repairs. It has one line per attempt. Each line is written to disk before the next step begins."""

import getpass
import os
import socket
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from pipelines.errors import PlanUnusable, UnreadableAudit
from pipelines.judging.rules import KnownRepairs
from pipelines.repair.plan import Action, RepairStep, StepOutcome


class AuditLine(msgspec.Struct, frozen=True):
    """A step with its time, user and outcome."""

    at: str
    by: str
    step: str
    action: str
    subject: str
    state: str
    detail: str


def read_audit(path: Path) -> Iterator[AuditLine]:
    """Yields the lines of an audit file. Raises UnreadableAudit.

    An incomplete last line is skipped, because its step has not begun.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    try:
                        yield msgspec.json.decode(line, type=AuditLine)
                    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                        if line.endswith(b"\n"):
                            raise UnreadableAudit(
                                f"audit {path}: line {number} was not written by repair --apply: {error}"
                            ) from None
    except OSError as error:
        raise UnreadableAudit(f"audit {path}: {error.strerror}") from None


def known_repairs(audits: Sequence[Path]) -> KnownRepairs:
    """Returns the repairs in these audits, including those without an outcome. Raises UnreadableAudit."""
    lines = [line for path in audits for line in read_audit(path)]
    return KnownRepairs(
        frozenset((line.step, line.subject) for line in lines if line.action == Action.REVERSE),
        frozenset(line.subject for line in lines if line.action == Action.PUBLISH),
    )


class Audit:
    """An append-only file of JSON lines. All methods raise PlanUnusable if it cannot be written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._by = f"{_user()}@{socket.gethostname()}"

    def begin(self, step: RepairStep) -> None:
        """Records that a step begins. An interrupted step has only this line."""
        self._write(step, "begun", "")

    def end(self, step: RepairStep, outcome: StepOutcome) -> None:
        """Records the outcome of a step."""
        self._write(step, outcome.state.value, outcome.detail)

    def _write(self, step: RepairStep, state: str, detail: str) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = AuditLine(at, self._by, step.id, step.action.value, step.subject, state, detail)
        try:
            with self.path.open("ab") as file:
                file.write(msgspec.json.encode(line) + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise PlanUnusable(f"audit {self.path}: {error.strerror}") from None


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
