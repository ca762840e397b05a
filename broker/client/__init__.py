"""The client: producers, transactions, consumers. It serves this broker and Apache RocketMQ alike.

All that a program needs is here:

    from broker.client import Message, Producer

    async with Producer("order-producers") as producer:
        await producer.send(Message.of("orders", "order 1 is paid", keys=["order-1"]))

A program without an event loop of its own uses an EventLoopThread.
"""

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
    TransactionListeners,
)
from broker.client.producer.producer import Producer
from broker.client.producer.replies import create_reply_message
from broker.client.producer.send_result import LocalTransactionState, SendResult, SendStatus, TransactionSendResult
from broker.client.pull.message_selector import MessageSelector
from broker.client.pull.pull_consumer import PullConsumer
from broker.client.pull.queue_progress import QueueProgress
from broker.client.pull.queue_requests import Pulled
from broker.client.push.push_consumer import PushConsumer
from broker.client.transaction.local_transaction import LocalTransaction, local_transaction
from broker.client.transaction.transaction_producer import TransactionProducer
from broker.message import IllegalMessage, Message, MessageExt, MessageQueue
from broker.protocol.codes import RequestCode
from broker.protocol.command import RemotingCommand
from broker.protocol.heartbeat import ConsumeFromWhere, MessageModel
from broker.remoting.rpc_hook import RpcHook
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
    "IllegalMessage",
    "LocalTransaction",
    "LocalTransactionState",
    "Message",
    "MessageExt",
    "MessageListener",
    "MessageModel",
    "MessageQueue",
    "MessageRefused",
    "MessageSelector",
    "MessagesWithdrawn",
    "NameServerUnreachable",
    "NoRoute",
    "NotRunning",
    "Producer",
    "PullConsumer",
    "Pulled",
    "PushConsumer",
    "QueueProgress",
    "RemotingCommand",
    "RequestCode",
    "RequestTimedOut",
    "RpcHook",
    "SendFailed",
    "SendResult",
    "SendStatus",
    "SessionCredentials",
    "TransactionListener",
    "TransactionListeners",
    "TransactionProducer",
    "TransactionSendResult",
    "UnreadableAnswer",
    "UnreadableMessage",
    "create_reply_message",
    "local_transaction",
    "name_server_addresses",
]
