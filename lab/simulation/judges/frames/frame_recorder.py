"""Records the frames between clients and brokers as readable events."""

from collections.abc import Callable
from typing import Final, Protocol

from rocketmq_broker.message import properties, sysflag
from rocketmq_broker.message.record import decode_records
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.headers.send import SendHeader
from rocketmq_broker.protocol.headers.transaction import CheckTransactionStateRequestHeader, EndTransactionRequestHeader
from rocketmq_broker.testing.simulation.page import ReportedKind

_DECISIONS: Final = {
    sysflag.TRANSACTION_COMMIT_TYPE: (ReportedKind.COMMIT, "COMMIT"),
    sysflag.TRANSACTION_ROLLBACK_TYPE: (ReportedKind.ROLLBACK, "ROLLBACK"),
}
_UNKNOWN: Final = (ReportedKind.ANSWER, "UNKNOWN")


class NoteFrame(Protocol):
    """A function that adds an event to the history of a simulation."""

    def __call__(self, process: str, kind: str, text: str, keys: tuple[str, ...] = (), to: str | None = None) -> None:
        """Adds an event of `process`. `to` is the receiving process, if any."""


class FrameRecorder:
    """Records half messages, messages, decisions, check-backs and deliveries at the time they are sent."""

    def __init__(self, note: NoteFrame, name_of: Callable[[str], str]) -> None:
        """Creates a recorder. `name_of` returns the name of the process at an address with port."""
        self._note = note
        self._name_of = name_of

    def record_sent(self, sender: str, receiver: str, header: SendHeader, keys: tuple[str, ...]) -> None:
        """Records a message or a half message sent to a broker."""
        is_half = properties.find(header.properties.encode(), properties.TRANSACTION_PREPARED) == "true"
        kind, word = (ReportedKind.HALF, "half message") if is_half else (ReportedKind.SEND, "message")
        self._record(sender, receiver, kind, f"{word} for {header.topic}", keys)

    def record_decision(self, sender: str, receiver: str, header: EndTransactionRequestHeader) -> None:
        """Records a producer's decision on its transaction."""
        kind, word = _DECISIONS.get(header.commit_or_rollback, _UNKNOWN)
        text = f"{word}, the answer to a check-back" if header.from_transaction_check else word
        self._record(sender, receiver, kind, text, (header.transaction_id or header.msg_id,))

    def record_check(self, sender: str, receiver: str, command: RemotingCommand) -> None:
        """Records a check-back sent to a producer. Ignores other requests of a broker."""
        if command.code == RequestCode.CHECK_TRANSACTION_STATE:
            header = command.decode_header(CheckTransactionStateRequestHeader)
            self._record(sender, receiver, ReportedKind.CHECK, "check-back", tuple(filter(None, (header.transaction_id,))))

    def record_pulled(self, sender: str, receiver: str, command: RemotingCommand) -> None:
        """Records each message in the response to a pull request."""
        if command.code != ResponseCode.SUCCESS:
            return
        for record in decode_records(command.body):
            keys = (record.get_property(properties.UNIQUE_KEY), *(record.get_property(properties.KEYS) or "").split())
            text = f"message of {record.topic.decode(errors='replace')}"
            self._record(sender, receiver, ReportedKind.DELIVERY, text, tuple(filter(None, keys)))

    def _record(self, sender: str, receiver: str, kind: ReportedKind, text: str, keys: tuple[str, ...]) -> None:
        self._note(self._name_of(sender), kind.value, text, keys, self._name_of(receiver))
