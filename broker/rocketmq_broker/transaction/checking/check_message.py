"""The message sent with a check-back: the half message, with the number of the check in TRANSACTION_CHECK_TIMES."""

from rocketmq_broker.message import record
from rocketmq_broker.transaction.messages.half_message import HalfMessage
from rocketmq_broker.transaction.pending_transaction import PendingTransaction
from rocketmq_broker.transaction.transitions import with_check_times


def check_message(half: HalfMessage, transaction: PendingTransaction, number: int) -> bytes:
    """Returns the record for the check with this number, starting at 1.

    The producer sends the offsets of this record back with its decision. Raises NotAHalfMessage if the half message has no valid
    destination.
    """
    topic, queue_id = half.destination()
    return record.encode_record(
        topic=topic,
        queue_id=queue_id,
        queue_offset=transaction.queue_offset,
        commit_log_offset=transaction.commit_log_offset,
        flag=half.flag,
        sys_flag=half.sys_flag,
        born_timestamp=half.born_timestamp,
        born_host=half.born_host,
        store_timestamp=half.store_timestamp,
        store_host=half.store_host,
        reconsume_times=half.reconsume_times,
        prepared_transaction_offset=half.prepared_transaction_offset,
        body=half.body,
        properties=with_check_times(half.properties, number),
        crc=half.body_crc,
    )
