"""The story of the frames between clients and brokers: what each one carries, as happenings that a person may read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from rocketmq_broker.message import properties, sysflag
from rocketmq_broker.message.record import decode_records
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.headers import CheckTransactionStateRequestHeader, EndTransactionRequestHeader, SendHeader
from rocketmq_broker.testing.simulation.page import ReportedKind

_DECISIONS: Final = {
    sysflag.TRANSACTION_COMMIT: (ReportedKind.COMMIT, "COMMIT"),
    sysflag.TRANSACTION_ROLLBACK: (ReportedKind.ROLLBACK, "ROLLBACK"),
}
_UNKNOWN: Final = (ReportedKind.ANSWER, "UNKNOWN")


class NoteFrame(Protocol):
    """Keeps a happening, as a world's history does."""

    def __call__(self, process: str, kind: str, text: str, keys: tuple[str, ...] = (), to: str | None = None) -> None:
        """Keeps that `process` sends this to `to`."""


class FrameTelling:
    """Tells half messages, messages, decisions, check-backs and deliveries, when their sender writes them: each as an arrow."""

    def __init__(self, note: NoteFrame, name_of: Callable[[str], str]) -> None:
        """`name_of` returns the name of the process at an address with its port."""
        self._note = note
        self._name_of = name_of

    def tell_sent(self, sender: str, receiver: str, header: SendHeader, keys: tuple[str, ...]) -> None:
        """Tells a message, or a half message, on its way to the broker."""
        is_half = properties.find(header.properties.encode(), properties.TRANSACTION_PREPARED) == "true"
        kind, word = (ReportedKind.HALF, "half message") if is_half else (ReportedKind.SEND, "message")
        self._tell(sender, receiver, kind, f"{word} for {header.topic}", keys)

    def tell_decision(self, sender: str, receiver: str, header: EndTransactionRequestHeader) -> None:
        """Tells what a producer says of its transaction."""
        kind, word = _DECISIONS.get(header.commit_or_rollback, _UNKNOWN)
        text = f"{word}, the answer to a check-back" if header.from_transaction_check else word
        self._tell(sender, receiver, kind, text, (header.transaction_id or header.msg_id,))

    def tell_check(self, sender: str, receiver: str, command: RemotingCommand) -> None:
        """Tells a check-back on its way to a producer. Other requests of a broker are no part of the story."""
        if command.code == RequestCode.CHECK_TRANSACTION_STATE:
            header = command.decode_header(CheckTransactionStateRequestHeader)
            self._tell(sender, receiver, ReportedKind.CHECK, "check-back", tuple(filter(None, (header.transaction_id,))))

    def tell_pulled(self, sender: str, receiver: str, command: RemotingCommand) -> None:
        """Tells each message in the answer to a consumer's pull."""
        if command.code != ResponseCode.SUCCESS:
            return
        for record in decode_records(command.body):
            keys = (record.get_property(properties.UNIQUE_KEY), *(record.get_property(properties.KEYS) or "").split())
            text = f"message of {record.topic.decode(errors='replace')}"
            self._tell(sender, receiver, ReportedKind.DELIVERY, text, tuple(filter(None, keys)))

    def _tell(self, sender: str, receiver: str, kind: ReportedKind, text: str, keys: tuple[str, ...]) -> None:
        self._note(self._name_of(sender), kind.value, text, keys, self._name_of(receiver))
