"""Collects a broker's records of a transaction. Apache's brokers store the same records, but no list of check-backs."""

from typing import NamedTuple

from rocketmq_broker.admin.broker_requests.figures import groups_of_topic
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.admin.decisions import half_offset_of
from rocketmq_broker.admin.errors import NotSupported
from rocketmq_broker.admin.messages.content import content_of
from rocketmq_broker.admin.messages.finding import GroupConsumption, consumed_by
from rocketmq_broker.message import properties as props
from rocketmq_broker.message import sysflag, topics
from rocketmq_broker.message.record import Record
from rocketmq_broker.protocol.bodies.transaction_admin import CheckBackInfo, TransactionInfo
from rocketmq_broker.protocol.headers.transaction_admin import ShowTransactionRequestHeader


class GroupEvidence(NamedTuple):
    """The records of a message's redeliveries and dead letters in one consumer group."""

    group: str
    redeliveries: list[Record]
    """Records of the group's retry topic, oldest first."""
    dead_letters: list[Record]


class TimelineEvidence(NamedTuple):
    """The records of a transaction, each list oldest first."""

    transaction_id: str
    halves: list[Record]
    """The half message and its later copies."""
    committed: list[Record]
    discarded: list[Record]
    groups: list[GroupEvidence]
    consumptions: list[GroupConsumption]
    info: TransactionInfo | None
    """The broker's information about the transaction; None for Apache's brokers."""

    @property
    def check_backs(self) -> list[CheckBackInfo]:
        """The check-backs that the broker remembers, oldest first."""
        return self.info.check_backs if self.info is not None else []


async def gather(broker: BrokerRequests, word: str) -> list[TimelineEvidence]:
    """Returns the transactions with this id, key or half offset, oldest first. Raises CannotAsk or Refused."""
    infos = await _infos(broker, word)
    words = {info.transaction_id for info in infos if info.transaction_id} or {word}
    halves = [half for one in sorted(words) for half in await broker.query(topics.HALF_TOPIC, one)]
    by_id: dict[str, dict[int, Record]] = {}
    for half in halves:
        transaction_id = half.get_property(props.UNIQUE_KEY)
        if transaction_id is not None:
            by_id.setdefault(transaction_id, {})[half.commit_log_offset] = half
    found = [await _evidence(broker, one, _sorted(list(same.values())), infos) for one, same in by_id.items()]
    return sorted(found, key=lambda evidence: evidence.halves[0].commit_log_offset)


async def _infos(broker: BrokerRequests, word: str) -> list[TransactionInfo]:
    try:
        return (await broker.show(ShowTransactionRequestHeader(word, word, half_offset_of(word)))).transactions
    except NotSupported:
        return []


async def _evidence(
    broker: BrokerRequests, transaction_id: str, halves: list[Record], infos: list[TransactionInfo]
) -> TimelineEvidence:
    topic = halves[0].get_property(props.REAL_TOPIC) or ""
    committed = [record for record in await broker.query(topic, transaction_id) if is_committed(record)]
    groups = await groups_of_topic(broker, topic) if committed else []
    return TimelineEvidence(
        transaction_id=transaction_id,
        halves=halves,
        committed=_sorted(committed),
        discarded=_sorted(await broker.query(topics.CHECK_MAX_TIME_TOPIC, transaction_id)),
        groups=[await _of_group(broker, group, transaction_id) for group in groups],
        consumptions=await consumed_by(broker, content_of(committed[0])) if committed else [],
        info=next((info for info in infos if info.transaction_id == transaction_id), None),
    )


async def _of_group(broker: BrokerRequests, group: str, transaction_id: str) -> GroupEvidence:
    return GroupEvidence(
        group,
        _sorted(await broker.query(topics.retry_topic(group), transaction_id)),
        _sorted(await broker.query(topics.dead_letter_topic(group), transaction_id)),
    )


def is_committed(record: Record) -> bool:
    """Returns whether the record is the visible message of a committed transaction."""
    return record.sys_flag & sysflag.TRANSACTION_MASK == sysflag.TRANSACTION_COMMIT_TYPE


def _sorted(records: list[Record]) -> list[Record]:
    return sorted(records, key=lambda record: record.commit_log_offset)
