"""The client: producers, transactions and consumers. It works with this broker and with Apache RocketMQ.

Import everything from here:

    from rocketmq_broker.client import Message, Producer

    async with Producer("order-producers") as producer:
        await producer.send(Message.of("orders", "order 1 is paid", keys=["order-1"]))

Programs without an event loop use `EventLoopThread`.
"""

from rocketmq_broker.acl import SessionCredentials
from rocketmq_broker.client.errors import (
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
    TransactionNotFound,
    UnreadableAnswer,
)
from rocketmq_broker.client.event_loop_thread import EventLoopThread
from rocketmq_broker.client.instance.name_servers import name_server_addresses
from rocketmq_broker.client.listeners import (
    ConsumeContext,
    ConsumeStatus,
    MessageListener,
    TransactionListener,
    TransactionListeners,
)
from rocketmq_broker.client.producer.producer import Producer
from rocketmq_broker.client.producer.replies import create_reply_message
from rocketmq_broker.client.producer.send_result import LocalTransactionState, SendResult, SendStatus, TransactionSendResult
from rocketmq_broker.client.pull.process_queue import QueueProgress
from rocketmq_broker.client.pull.pull_consumer import PullConsumer
from rocketmq_broker.client.pull.queue_requests import PullAnswer, UnreadableMessage
from rocketmq_broker.client.pull.result_positions import PositionsUnavailable, ResultPositions, Setback
from rocketmq_broker.client.pull.subscription import MessageSelector
from rocketmq_broker.client.push.push_consumer import PushConsumer
from rocketmq_broker.client.transaction.local_transaction import LocalTransaction, local_transaction
from rocketmq_broker.client.transaction.transaction_producer import TransactionProducer
from rocketmq_broker.message import IllegalMessage, Message, MessageExt, MessageQueue
from rocketmq_broker.protocol.bodies.heartbeat import ConsumeFromWhere, MessageModel
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.remoting.rpc_hook import RpcHook
from rocketmq_broker.remoting.tls import ClientTls

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
    "PositionsUnavailable",
    "Producer",
    "PullAnswer",
    "PullConsumer",
    "PushConsumer",
    "QueueProgress",
    "RemotingCommand",
    "RequestCode",
    "RequestTimedOut",
    "ResultPositions",
    "RpcHook",
    "SendFailed",
    "SendResult",
    "SendStatus",
    "SessionCredentials",
    "Setback",
    "TransactionListener",
    "TransactionListeners",
    "TransactionNotFound",
    "TransactionProducer",
    "TransactionSendResult",
    "UnreadableAnswer",
    "UnreadableMessage",
    "create_reply_message",
    "local_transaction",
    "name_server_addresses",
]
