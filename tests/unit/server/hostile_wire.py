"""Sends every request that a client can send, to the store and the transactions of a TransactionBroker."""

import struct
from pathlib import Path
from random import Random
from typing import Any, cast

from rocketmq_broker.message import properties as props
from rocketmq_broker.message.errors import IllegalMessage
from rocketmq_broker.message.record import encode_record
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_request
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.protocol.headers.send import SendMessageRequestHeaderV2
from rocketmq_broker.protocol.headers.transaction import EndTransactionRequestHeader
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Dispatcher
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.server.clients.client_processor import ClientProcessor
from rocketmq_broker.server.clients.consumer_groups import ConsumerGroups
from rocketmq_broker.server.clients.message_filters import MessageFilters
from rocketmq_broker.server.clients.producer_groups import ProducerGroups
from rocketmq_broker.server.operators.consumer_call_processor import ConsumerCallProcessor
from rocketmq_broker.server.operators.group_admin_processor import GroupAdminProcessor
from rocketmq_broker.server.operators.progress_processor import ProgressProcessor
from rocketmq_broker.server.parked import DeadLetterProcessor
from rocketmq_broker.server.popping import InHand
from rocketmq_broker.server.popping.hidden_messages import HiddenMessages
from rocketmq_broker.server.pulling.held_pulls import HeldPulls
from rocketmq_broker.server.pulling.offset_processor import OffsetProcessor
from rocketmq_broker.server.pulling.pull_processor import PullProcessor
from rocketmq_broker.server.pulling.query_processor import QueryProcessor
from rocketmq_broker.server.schedule.delayed_delivery import DelayedDelivery
from rocketmq_broker.server.sending.send_back_processor import SendBackProcessor
from rocketmq_broker.server.sending.send_processor import SendDestination, SendProcessor
from rocketmq_broker.server.statistics.message_flows import MessageFlows
from rocketmq_broker.server.statistics.statistics import BrokerStatistics
from rocketmq_broker.server.topics.offset_commits import OffsetCommits
from rocketmq_broker.server.topics.subscription_group_table import SubscriptionGroupTable
from rocketmq_broker.store import Appended, DelayOffsets, StoreUnwritable, SubscriptionGroups
from tests.unit.server.conftest import IDENTITY, Wire
from tests.unit.server.transaction_broker import GROUP, ROOT, STORE_HOST, TransactionBroker

HIGHEST_DELAY_LEVEL = 18
HEAD_LENGTH = 88
"""Bytes of a record with IPv4 hosts before its body."""
AS_HALF = ("TRAN_MSG", "true")


class HostileWire:
    """A hostile client's connection to a broker. All effects of a request are durable when its response arrives."""

    def __init__(
        self, broker: TransactionBroker, peer: str = "127.0.0.1:6666", *, groups: SubscriptionGroups | None = None
    ) -> None:
        self.broker = broker
        self.wire = Wire(peer)
        self.delayed = self._delayed_delivery(ROOT / "config")
        self._dispatcher = Dispatcher(
            refusals={
                IllegalMessage: ResponseCode.MESSAGE_ILLEGAL,
                StoreUnwritable: ResponseCode.SERVICE_NOT_AVAILABLE,
                OSError: ResponseCode.SYSTEM_ERROR,
            }
        )
        self._opaque = 0
        self._add_processors(groups or SubscriptionGroups(ROOT / "config", broker.files))

    def ask(self, code: int, header: CommandHeader | None = None, body: bytes = b"") -> int:
        """Sends a request. Returns the response code."""
        return self.answer(code, header, body).code

    def answer(self, code: int, header: CommandHeader | None = None, body: bytes = b"") -> RemotingCommand:
        """Sends a request. Returns the response."""
        (answer,) = self._request(code, header, body, is_oneway=False)
        return answer

    def tell(self, code: int, header: CommandHeader | None = None, body: bytes = b"") -> None:
        """Sends a one-way request."""
        assert self._request(code, header, body, is_oneway=True) == []

    def _request(self, code: int, header: CommandHeader | None, body: bytes, *, is_oneway: bool) -> list[RemotingCommand]:
        self._opaque += 1
        before = len(self.wire.answers)
        frame = encode_request(code, header, body, opaque=self._opaque, oneway=is_oneway)
        self._dispatcher.on_requests(cast(Connection, self.wire), FrameDecoder().feed(frame))
        self.broker.flush()
        return self.wire.answers[before:]

    def deliver_due(self) -> None:
        """Delivers the delayed messages that are due, as the timer does."""
        self.delayed.deliver_due()
        self.broker.flush()
        self.delayed.confirm(self.broker.store.flushed_position)

    def _delayed_delivery(self, directory: Path) -> DelayedDelivery:
        broker = self.broker
        return DelayedDelivery(
            store=broker.store,
            group_commit=cast(Any, broker),
            offsets=DelayOffsets(directory, broker.files),
            queues=broker.topics,
            levels_ms=broker.store.config.delay_levels_ms,
            clock=lambda: broker.now_ms,
            max_sleep_s=1.0,
        )

    def _add_processors(self, subscription_groups: SubscriptionGroups) -> None:
        broker, offsets, topics = self.broker, self.broker.consumer_offsets, self.broker.topics
        store, commit = broker.store, cast(Any, broker)

        def clock() -> int:
            return broker.now_ms

        groups = SubscriptionGroupTable(subscription_groups, auto_create=True, clock=clock, max_groups=5_000)
        commits = OffsetCommits(offsets, topics, groups)
        producers, consumers = ProducerGroups(), ConsumerGroups(lambda group, connections: None)
        statistics = BrokerStatistics(start_ms=clock(), flows=MessageFlows("DefaultCluster"))
        filters = MessageFilters(is_property_filter_enabled=True)
        for processor in (
            SendProcessor(
                identity=IDENTITY, store=store, group_commit=commit, destination=SendDestination(topics, groups, Random(1)),
                half_messages=broker.half_messages, region_id="r", is_trace_on=True, statistics=statistics,
                delay_levels_ms=broker.store.config.delay_levels_ms, clock=clock,
            ),
            SendBackProcessor(
                store=store, group_commit=commit, topic_table=topics, subscription_groups=groups, consumer_groups=consumers,
                offsets=offsets, statistics=statistics, highest_delay_level=HIGHEST_DELAY_LEVEL, clock=clock, random=Random(1),
            ),
            PullProcessor(
                store=store, topic_table=topics, subscription_groups=groups, consumer_groups=consumers, offset_commits=commits,
                held_pulls=HeldPulls(), message_filters=filters, statistics=statistics, max_messages=32, max_bytes=1 << 18,
                short_polling_ms=None, broker_permission=6, clock=clock,
            ),
            ClientProcessor(
                producer_groups=producers, consumer_groups=consumers, subscription_groups=groups, topic_table=topics,
                message_filters=filters, clock=clock,
            ),
            OffsetProcessor(store=store, offsets=offsets, offset_commits=commits, young_queue_bytes=1 << 20),
            ProgressProcessor(
                identity=IDENTITY, store=store, topic_table=topics, subscription_groups=groups, consumer_groups=consumers,
                offsets=offsets, offset_commits=commits, in_hand=InHand(HiddenMessages(), offsets, store), clock=clock,
                pulled_per_second=statistics.flows.pulled_per_second,
            ),
            GroupAdminProcessor(
                subscription_groups=groups, consumer_groups=consumers, producer_groups=producers, offsets=offsets,
                date_of=lambda steady_ms: steady_ms,
            ),
            ConsumerCallProcessor(
                identity=IDENTITY, store=store, topic_table=topics, consumer_groups=consumers, offsets=offsets, tasks=Tasks()
            ),
            QueryProcessor(store=store, tasks=Tasks(), steady_ns=lambda: 0),
            DeadLetterProcessor(
                parked=broker.parked, store=store, group_commit=commit, topic_table=topics, subscription_groups=groups,
                clock=clock, random=Random(1),
            ),
        ):  # fmt: skip
            self._dispatcher.add(cast(Any, processor).handlers)
        self._dispatcher.add(broker.dispatcher.handlers)


def sent(transaction_id: str, born_ms: int, *more: tuple[str, str], **changes: object) -> SendMessageRequestHeaderV2:
    """Returns a header for a hostile message, with additional properties.

    All values that a client may set are equal to those of the attacked message.
    """
    pairs = [("UNIQ_KEY", transaction_id), ("PGROUP", GROUP), ("TAGS", "created"), *more]
    fields = {
        "producer_group": GROUP, "topic": "orders", "default_topic": "TBW102", "default_topic_queue_nums": 4, "queue_id": 2,
        "sys_flag": 0, "born_timestamp": born_ms, "flag": 0,
        "properties": "\x02".join(name + "\x01" + value for name, value in pairs),
    }  # fmt: skip
    return SendMessageRequestHeaderV2(**{**fields, **changes})


def end(half: Appended, answer: int, group: str = GROUP) -> EndTransactionRequestHeader:
    """Returns the header of a decision about a half message."""
    return EndTransactionRequestHeader(
        producer_group=group, tran_state_table_offset=half.queue_offset, commit_log_offset=half.commit_log_offset,
        commit_or_rollback=answer, from_transaction_check=False, msg_id="x",
    )  # fmt: skip


def batch(encoded: str, body: bytes) -> bytes:
    """Returns the body of SEND_BATCH_MESSAGE with one message."""
    data = encoded.encode()
    head = struct.pack(">iiiii", 22 + len(body) + len(data), 0, 0, 0, len(body))
    return head + body + struct.pack(">h", len(data)) + data


def forged_record(commit_log_offset: int, *, topic: bytes, queue_offset: int, body: bytes = b"forged", **own: str) -> bytes:
    """Returns a record that is intact if it is stored at that commit log offset, for example inside a message body."""
    own = {"UNIQ_KEY": "T1", "PGROUP": GROUP, "REAL_TOPIC": "orders", "REAL_QID": "2", **own}
    return encode_record(
        topic=topic, queue_id=0, queue_offset=queue_offset, commit_log_offset=commit_log_offset, flag=0, sys_flag=0,
        born_timestamp=0, born_host=bytes(8), store_timestamp=0, store_host=STORE_HOST, reconsume_times=0,
        prepared_transaction_offset=0, body=body, properties=props.encode(own),
    )  # fmt: skip
