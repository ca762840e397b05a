"""Appends the records of transactions to the store, and reads half messages (RocketMQ's TransactionalMessageBridge)."""

from rocketmq_broker.message.inner_message import InnerMessage
from rocketmq_broker.store import Appended, MessageStore, RecordLost, RecordNotFound, UnreadableRecord
from rocketmq_broker.transaction.errors import HalfMessageExpired, HalfMessageLost, NotAHalfMessage, NotWrittenYet
from rocketmq_broker.transaction.messages.half_message import HalfMessage, read_any_message, read_half_message
from rocketmq_broker.transaction.messages.op_message import op_message
from rocketmq_broker.transaction.pending_transaction import PendingTransaction
from rocketmq_broker.transaction.states import State


class TransactionBridge:
    """Appends the records of state changes. All methods that append raise StoreUnwritable."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self._store_host = store.config.store_host
        self.appended_position = 0
        """The commit log offset after the last record appended by this object."""

    def append_half(self, half: InnerMessage, now_ms: int) -> Appended:
        """Appends a half message. Also raises IllegalMessage."""
        appended = self._store.append(half, now_ms)
        self.appended_position = appended.end_position
        return appended

    def append(self, message: InnerMessage, now_ms: int) -> Appended:
        """Appends a message that was accepted earlier. Does not check its size, and may use the reserved disk space."""
        appended = self._store.append(message, now_ms, was_accepted=True, may_use_reserve=True)
        self.appended_position = appended.end_position
        return appended

    def append_op(self, half_queue_offset: int, now_ms: int, state: State | None = None, reason: str | None = None) -> Appended:
        """Appends the op message that closes a half message."""
        return self.append(op_message(half_queue_offset, now_ms, self._store_host, state, reason), now_ms)

    def take_back(self, position: int) -> None:
        """Lowers `appended_position` after all records at or after the commit log offset `position` are lost."""
        self.appended_position = min(self.appended_position, position)

    def read(self, transaction: PendingTransaction) -> HalfMessage:
        """Reads the newest half message of a transaction. Raises NotWrittenYet, HalfMessageLost."""
        try:
            half = read_half_message(self._store.read(transaction.stored_at))
        except RecordNotFound as error:
            raise NotWrittenYet(str(error)) from None
        except (RecordLost, NotAHalfMessage) as error:
            is_expired = transaction.stored_at < self._store.commit_log_min_offset
            raise (HalfMessageExpired if is_expired else HalfMessageLost)(str(error)) from None
        if half.queue_offset != transaction.stored_queue_offset:
            raise HalfMessageLost(f"the half message at {transaction.stored_at} has a wrong queue offset: {half.queue_offset}")
        return half

    def message_at(self, commit_log_offset: int) -> HalfMessage | None:
        """Reads the message at a commit log offset. Returns None if there is no message."""
        return message_at(self._store, commit_log_offset)


def message_at(store: MessageStore, commit_log_offset: int) -> HalfMessage | None:
    """Reads the message at an untrusted commit log offset, which comes from a client or from another record.

    Returns None if there is no message.
    """
    try:
        return read_any_message(store.read_queued(commit_log_offset))
    except UnreadableRecord:
        return None
