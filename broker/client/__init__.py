"""The client: producers, transactions, consumers. It serves this broker and Apache RocketMQ alike."""

from broker.acl import SessionCredentials
from broker.client.errors import (
    BrokerError,
    BrokerUnreachable,
    ClientError,
    IllegalConfiguration,
    MessageRefused,
    MessagesWithdrawn,
    NameServerUnreachable,
    NoRoute,
    NotRunning,
    RequestTimedOut,
    SendFailed,
    UnreadableAnswer,
)
from broker.client.event_loop_thread import EventLoopThread
from broker.client.instance.name_servers import name_server_addresses
from broker.client.instance.unreadable import UnreadableMessage
from broker.client.listeners import (
    ConsumeContext,
    ConsumeStatus,
    MessageListener,
    TransactionListener,
)
from broker.client.producer.producer import Producer
from broker.client.producer.send_result import LocalTransactionState, SendResult, SendStatus, TransactionSendResult
from broker.client.pull.message_selector import MessageSelector
from broker.client.pull.pull_consumer import PullConsumer
from broker.client.pull.queue_progress import QueueProgress
from broker.client.push.push_consumer import PushConsumer
from broker.client.transaction.transaction_producer import TransactionProducer
from broker.protocol.heartbeat import ConsumeFromWhere, MessageModel
from broker.remoting.tls import ClientTls

__all__ = [
    "BrokerError",
    "BrokerUnreachable",
    "ClientError",
    "ClientTls",
    "ConsumeContext",
    "ConsumeFromWhere",
    "ConsumeStatus",
    "EventLoopThread",
    "IllegalConfiguration",
    "LocalTransactionState",
    "MessageListener",
    "MessageModel",
    "MessageRefused",
    "MessageSelector",
    "MessagesWithdrawn",
    "NameServerUnreachable",
    "NoRoute",
    "NotRunning",
    "Producer",
    "PullConsumer",
    "PushConsumer",
    "QueueProgress",
    "RequestTimedOut",
    "SendFailed",
    "SendResult",
    "SendStatus",
    "SessionCredentials",
    "TransactionListener",
    "TransactionProducer",
    "TransactionSendResult",
    "UnreadableAnswer",
    "UnreadableMessage",
    "name_server_addresses",
]
