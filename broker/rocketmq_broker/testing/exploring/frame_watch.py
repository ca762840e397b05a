"""Observes the frames between programs and broker, to check decisions and to record messages in the history."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from rocketmq_broker.message import properties, sysflag
from rocketmq_broker.message.errors import MessageError
from rocketmq_broker.message.record import decode_records
from rocketmq_broker.protocol.codes import SEND_REQUESTS, RequestCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.errors import ProtocolError
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.protocol.headers.send import SendHeader, SendMessageRequestHeader, SendMessageRequestHeaderV2
from rocketmq_broker.protocol.headers.transaction import CheckTransactionStateRequestHeader, EndTransactionRequestHeader
from rocketmq_broker.testing.exploring.errors import RuleBroken
from rocketmq_broker.testing.simulation.history import History
from rocketmq_broker.testing.simulation.page import ReportedKind

_DECISIONS: Final = {sysflag.TRANSACTION_COMMIT_TYPE: "COMMIT", sysflag.TRANSACTION_ROLLBACK_TYPE: "ROLLBACK"}
_MARK_OF_DECISION: Final = f'"code":{RequestCode.END_TRANSACTION.value},'.encode()


class DecisionWatch:
    """Checks the decisions that programs send to the broker, including decisions that are lost. Reports each violation once."""

    def __init__(
        self, names: Mapping[str, str], on_decision: Callable[[str], object], on_broken: Callable[[RuleBroken], object]
    ) -> None:
        """Creates a watch. `names` maps the addresses of processes to their names.

        `on_decision` is called with the name of a program before its decision is sent. It may kill the program, and raise Killed.
        `on_broken` is called with the error for a transaction with two outcomes.
        """
        self._names = names
        self._on_decision = on_decision
        self._on_broken = on_broken
        self._decisions: dict[str, str] = {}

    def see(self, sender: str, receiver: str, written: bytes) -> None:
        """Checks the decisions in written bytes. Implements `rocketmq_broker.testing.simulation.network.notes.Observer`."""
        if _MARK_OF_DECISION not in written:
            return
        for command in _commands(written):
            if command.code == RequestCode.END_TRANSACTION and not command.is_response:
                self._check(command.decode_header(EndTransactionRequestHeader))
                self._on_decision(self._names[sender.rpartition(":")[0]])

    def _check(self, header: EndTransactionRequestHeader) -> None:
        transaction_id, decision = header.transaction_id or header.msg_id, _DECISIONS.get(header.commit_or_rollback)
        if decision is None:
            return
        before = self._decisions.setdefault(transaction_id, decision)
        if before != decision:
            self._decisions[transaction_id] = decision
            self._on_broken(
                RuleBroken(
                    f"the transaction {transaction_id} has two outcomes: {header.producer_group} sent {before}, "
                    f"then {decision}. A transaction listener must answer from its database"
                )
            )


class FrameJournal:
    """Records messages, decisions, check-backs and deliveries in a history, for the failure report."""

    def __init__(self, history: History, names: Mapping[str, str]) -> None:
        """Creates a journal that writes to `history`. `names` maps the addresses of processes to their names."""
        self._history = history
        self._names = names
        self._keys: dict[str, tuple[str, ...]] = {}

    def see(self, sender: str, receiver: str, written: bytes) -> None:
        """Records the messages in written bytes."""
        for command in _commands(written):
            with suppress(ProtocolError, MessageError):
                self.record(sender, receiver, command)

    def record(self, sender: str, receiver: str, command: RemotingCommand) -> None:
        """Records the messages in one command. Raises ProtocolError and MessageError."""
        sender, receiver = (self._names.get(end.rpartition(":")[0], end) for end in (sender, receiver))
        if command.is_response:
            for record in decode_records(command.body):
                keys = self._known(record.properties)
                self._note(sender, receiver, ReportedKind.DELIVERY, "a message for its consumer", keys)
        elif command.code in SEND_REQUESTS:
            self._record_message(sender, receiver, command)
        elif command.code == RequestCode.END_TRANSACTION:
            header = command.decode_header(EndTransactionRequestHeader)
            keys = self._keys_of(header.transaction_id or header.msg_id)
            decision = _DECISIONS.get(header.commit_or_rollback, "UNKNOWN")
            kind = {"COMMIT": ReportedKind.COMMIT, "ROLLBACK": ReportedKind.ROLLBACK}.get(decision, ReportedKind.ANSWER)
            source = ", the answer to a check-back" if header.from_transaction_check else ""
            self._note(sender, receiver, kind, f"{decision}{source}", keys)
        elif command.code == RequestCode.CHECK_TRANSACTION_STATE:
            asked = command.decode_header(CheckTransactionStateRequestHeader)
            self._note(
                sender, receiver, ReportedKind.CHECK, "check-back", self._keys_of(asked.transaction_id or asked.msg_id or "")
            )
        elif command.code == RequestCode.CONSUMER_SEND_MSG_BACK:
            self._note(sender, receiver, ReportedKind.ANSWER, "sends a message back to receive it again later", ())

    def _record_message(self, sender: str, receiver: str, command: RemotingCommand) -> None:
        header: SendHeader
        if command.code == RequestCode.SEND_MESSAGE:
            header = command.decode_header(SendMessageRequestHeader)
        else:
            header = command.decode_header(SendMessageRequestHeaderV2)
        encoded = header.properties.encode()
        is_half = properties.find(encoded, properties.TRANSACTION_PREPARED) == "true"
        kind, what = (ReportedKind.HALF, "half message") if is_half else (ReportedKind.SEND, "message")
        self._note(sender, receiver, kind, f"{what} to {header.topic}", self._known(encoded))

    def _known(self, encoded: bytes) -> tuple[str, ...]:
        """Returns the keys of a message, and stores them under its unique key."""
        unique_key = properties.find(encoded, properties.UNIQUE_KEY) or ""
        keys = self._keys[unique_key] = (unique_key, *(properties.find(encoded, properties.KEYS) or "").split())
        return keys

    def _keys_of(self, transaction_id: str) -> tuple[str, ...]:
        return self._keys.get(transaction_id, (transaction_id,))

    def _note(self, sender: str, receiver: str, kind: ReportedKind, text: str, keys: tuple[str, ...]) -> None:
        self._history.note(sender, kind, text, keys, receiver)


def _commands(written: bytes) -> list[RemotingCommand]:
    """Returns the commands in written bytes, or an empty list if they contain no complete frame."""
    with suppress(ProtocolError):
        return list(FrameDecoder(len(written)).feed(written))
    return []
