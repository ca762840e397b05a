"""A hostile client for model-based tests. Each attack sends requests and checks that the forbidden ones are refused."""

from collections.abc import Callable
from typing import Final

from rocketmq_broker.message import sysflag
from rocketmq_broker.message.ids import offset_message_id
from rocketmq_broker.protocol.codes import AdminRequestCode, RequestCode, ResponseCode
from rocketmq_broker.protocol.headers.group import CloneGroupOffsetRequestHeader, DeleteSubscriptionGroupRequestHeader
from rocketmq_broker.protocol.headers.parked_admin import DismissDeadLetterRequestHeader, RetryDeadLetterRequestHeader
from rocketmq_broker.protocol.headers.pull import PullMessageRequestHeader, UpdateConsumerOffsetRequestHeader
from rocketmq_broker.protocol.headers.send import ConsumerSendMsgBackRequestHeader
from rocketmq_broker.protocol.headers.topic import ViewMessageRequestHeader
from rocketmq_broker.protocol.headers.transaction import ResumeCheckHalfMessageRequestHeader
from rocketmq_broker.store import Appended
from tests.unit.server.hostile_wire import AS_HALF, HEAD_LENGTH, HostileWire, batch, end, forged_record, sent
from tests.unit.server.transaction_broker import (
    DISCARD_TOPIC,
    GROUP,
    HALF_TOPIC,
    OP_TOPIC,
    STORE_HOST,
    TRANSACTION_GROUP,
    TransactionBroker,
)

FORGED: Final = b"forged"
"""The body of every message that the hostile client has of its own; honest ones have another."""
REFUSED: Final = (ResponseCode.SYSTEM_ERROR, ResponseCode.NO_PERMISSION, ResponseCode.MESSAGE_ILLEGAL)
_ALL_OF_SYS_FLAG: Final = 0x7FFFFFF3


class HostileClient:
    """A client that attacks transactions by their ids, groups, times and offsets. Use a new object for each run of the broker."""

    def __init__(self, broker: TransactionBroker) -> None:
        self.half_offsets: set[int] = set()
        """Commit log offsets of the half messages that it has sent in this life."""
        self._broker = broker
        self._wire = HostileWire(broker)

    def attack(self, kind: int, transaction_id: str, half: Appended, born_ms: int) -> None:
        """Runs an attack of `ATTACKS` on a transaction. Afterwards, everything stored so far is durable."""
        ATTACKS[kind](self, transaction_id, half, born_ms)

    def claim_to_be_committed(self, transaction_id: str, half: Appended, born_ms: int) -> None:
        """Sends plain messages with the transaction bits of a committed, a rolled-back and a half message."""
        for bits in (sysflag.TRANSACTION_COMMIT_TYPE, sysflag.TRANSACTION_ROLLBACK_TYPE, sysflag.TRANSACTION_PREPARED_TYPE):
            header = sent(transaction_id, born_ms, sys_flag=bits)
            assert self._wire.ask(RequestCode.SEND_MESSAGE_V2, header, FORGED) in REFUSED
            in_batch = sent(transaction_id, born_ms, sys_flag=bits, batch=True)
            assert self._wire.ask(RequestCode.SEND_BATCH_MESSAGE, in_batch, batch(header.properties, FORGED)) in REFUSED
            self._wire.tell(RequestCode.SEND_MESSAGE_V2, header, FORGED)

    def look_like_the_message(self, transaction_id: str, half: Appended, born_ms: int) -> None:
        """Sends a plain message with every value that a client may set."""
        header = sent(transaction_id, born_ms, sys_flag=_ALL_OF_SYS_FLAG)
        assert self._wire.ask(RequestCode.SEND_MESSAGE_V2, header, FORGED) == ResponseCode.SUCCESS

    def claim_to_be_a_copy(self, transaction_id: str, half: Appended, born_ms: int) -> None:
        """Sends a half message with the properties that only the broker writes into copies."""
        own = [("TRANSACTION_CHECK_TIMES", "1"), ("TRAN_PREPARED_QUEUE_OFFSET", str(half.queue_offset)), ("RESUMED_FROM", "0")]
        self._send_half(transaction_id, born_ms, *own, *own)

    def claim_to_be_resumed(self, transaction_id: str, half: Appended, born_ms: int) -> None:
        """Sends a half message with the number of check-backs that a resumed message has."""
        self._send_half(transaction_id, born_ms, ("TRANSACTION_CHECK_TIMES", "0"))

    def claim_a_destination(self, transaction_id: str, half: Appended, born_ms: int) -> None:
        """Sends a half message and a delayed message that both name system topics as their destination, twice."""
        own = [("REAL_TOPIC", OP_TOPIC), ("REAL_TOPIC", "SCHEDULE_TOPIC_XXXX"), ("REAL_QID", "7"), ("REAL_QID", "x")]
        self._send_half(transaction_id, born_ms, *own)
        delayed = sent(transaction_id, born_ms, *own, ("DELAY", "1"))
        assert self._wire.ask(RequestCode.SEND_MESSAGE_V2, delayed, FORGED) == ResponseCode.SUCCESS
        self._wire.deliver_due()

    def commit_a_twin(self, transaction_id: str, half: Appended, born_ms: int) -> None:
        """Sends a similar half message, which begins a separate transaction, and commits that transaction."""
        self._end_twin(transaction_id, born_ms, sysflag.TRANSACTION_COMMIT_TYPE)

    def roll_back_a_twin(self, transaction_id: str, half: Appended, born_ms: int) -> None:
        """Sends a similar half message, which begins a separate transaction, and rolls that transaction back."""
        self._end_twin(transaction_id, born_ms, sysflag.TRANSACTION_ROLLBACK_TYPE)

    def decide_wrongly(self, transaction_id: str, half: Appended, born_ms: int) -> None:
        """Sends decisions in which one field of the transaction is wrong."""
        wrong = (
            (GROUP, half.queue_offset + 1, half.commit_log_offset),
            (GROUP, half.queue_offset, half.commit_log_offset + 1),
            ("g" * 120, half.queue_offset, half.commit_log_offset),
        )
        for group, queue_offset, commit_log_offset in wrong:
            for answer in (sysflag.TRANSACTION_COMMIT_TYPE, sysflag.TRANSACTION_ROLLBACK_TYPE):
                assert self._end(Appended(commit_log_offset, queue_offset, 0), answer, group) in REFUSED

    def forge_a_record(self, transaction_id: str, half: Appended, born_ms: int) -> None:
        """Sends records inside message bodies, and tries to resume, send back, view and decide them."""
        for topic in (HALF_TOPIC, DISCARD_TOPIC, "%DLQ%g", "orders"):
            at = self._broker.store.written_position + HEAD_LENGTH
            body = forged_record(at, topic=topic.encode(), queue_offset=half.queue_offset, body=FORGED, UNIQ_KEY=transaction_id)
            self._wire.ask(RequestCode.SEND_MESSAGE_V2, sent("carrier", 0, queue_id=7), body)
            self._use_as_message(at)
            for answer in (sysflag.TRANSACTION_COMMIT_TYPE, sysflag.TRANSACTION_ROLLBACK_TYPE):
                assert self._end(Appended(at, half.queue_offset, 0), answer) in REFUSED

    def use_the_half_message(self, transaction_id: str, half: Appended, born_ms: int) -> None:
        """Tries to resume the half message and to send it back.

        The broker must refuse both, because the message was not discarded and no consumer received it.
        """
        at = half.commit_log_offset
        resume = ResumeCheckHalfMessageRequestHeader(msg_id=offset_message_id(STORE_HOST, at))
        assert self._wire.ask(RequestCode.RESUME_CHECK_HALF_MESSAGE, resume) in REFUSED
        back = ConsumerSendMsgBackRequestHeader(offset=at, group="g", delay_level=1)
        assert self._wire.ask(RequestCode.CONSUMER_SEND_MSG_BACK, back) in REFUSED
        assert self._wire.ask(RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequestHeader(offset=at)) == ResponseCode.SUCCESS
        self._use_as_dead_letter(at)

    def set_offsets(self, transaction_id: str, half: Appended, born_ms: int) -> None:
        """Sends every request that writes offsets, for the group that holds the progress of transactions."""
        for topic in (HALF_TOPIC, OP_TOPIC):
            commit = {"consumer_group": TRANSACTION_GROUP, "topic": topic, "queue_id": 0, "commit_offset": half.queue_offset + 1}
            pull = PullMessageRequestHeader(
                **commit, queue_offset=0, max_msg_nums=1, sys_flag=5, suspend_timeout_millis=0, subscription="*", sub_version=0
            )
            assert self._wire.ask(RequestCode.UPDATE_CONSUMER_OFFSET, UpdateConsumerOffsetRequestHeader(**commit)) in REFUSED
            assert self._wire.ask(RequestCode.PULL_MESSAGE, pull) in REFUSED
            clone = CloneGroupOffsetRequestHeader(src_group="g", dest_group=TRANSACTION_GROUP, topic=topic, offline=True)
            assert self._wire.ask(RequestCode.CLONE_GROUP_OFFSET, clone) in REFUSED
        delete = DeleteSubscriptionGroupRequestHeader(group_name=TRANSACTION_GROUP, remove_offset=True)
        assert self._wire.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, delete) in REFUSED

    def _send_half(self, transaction_id: str, born_ms: int, *claimed: tuple[str, str]) -> Appended:
        header = sent(transaction_id, born_ms, *claimed, AS_HALF, *claimed, sys_flag=sysflag.TRANSACTION_PREPARED_TYPE)
        assert self._wire.ask(RequestCode.SEND_MESSAGE_V2, header, FORGED) == ResponseCode.SUCCESS
        stored = self._broker.records(HALF_TOPIC)[-1]
        self.half_offsets.add(stored.commit_log_offset)
        return Appended(stored.commit_log_offset, stored.queue_offset, 0)

    def _end_twin(self, transaction_id: str, born_ms: int, answer: int) -> None:
        assert self._end(self._send_half(transaction_id, born_ms), answer) == ResponseCode.SUCCESS

    def _end(self, half: Appended, answer: int, group: str = GROUP) -> int:
        return self._wire.ask(RequestCode.END_TRANSACTION, end(half, answer, group))

    def _use_as_message(self, at: int) -> None:
        resume = ResumeCheckHalfMessageRequestHeader(msg_id=offset_message_id(STORE_HOST, at))
        back = ConsumerSendMsgBackRequestHeader(offset=at, group="g", delay_level=1)
        assert self._wire.ask(RequestCode.RESUME_CHECK_HALF_MESSAGE, resume) in REFUSED
        assert self._wire.ask(RequestCode.CONSUMER_SEND_MSG_BACK, back) in REFUSED
        assert self._wire.ask(RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequestHeader(offset=at)) in REFUSED
        self._use_as_dead_letter(at)

    def _use_as_dead_letter(self, at: int) -> None:
        retry, dismissal = RetryDeadLetterRequestHeader(at, again=True), DismissDeadLetterRequestHeader(at, "none of mine")
        assert self._wire.ask(AdminRequestCode.RETRY_DEAD_LETTER, retry) in REFUSED
        assert self._wire.ask(AdminRequestCode.DISMISS_DEAD_LETTER, dismissal) in REFUSED


ATTACKS: Final[list[Callable[[HostileClient, str, Appended, int], None]]] = [
    HostileClient.claim_to_be_committed,
    HostileClient.look_like_the_message,
    HostileClient.claim_to_be_a_copy,
    HostileClient.claim_to_be_resumed,
    HostileClient.claim_a_destination,
    HostileClient.commit_a_twin,
    HostileClient.roll_back_a_twin,
    HostileClient.decide_wrongly,
    HostileClient.forge_a_record,
    HostileClient.use_the_half_message,
    HostileClient.set_offsets,
]
