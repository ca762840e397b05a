"""The client: producers, transactions, consumers. It serves this broker and Apache RocketMQ alike."""

from broker.client.errors import (
    BrokerError,
    BrokerUnreachable,
    ClientError,
    IllegalConfiguration,
    MessageRefused,
    NameServerUnreachable,
    NoRoute,
    NotRunning,
    RequestTimedOut,
    SendFailed,
)
from broker.client.listeners import (
    ConsumeContext,
    ConsumeFromWhere,
    ConsumeStatus,
    MessageListener,
    MessageModel,
    TransactionListener,
)
from broker.client.send_result import LocalTransactionState, SendResult, SendStatus, TransactionSendResult

__all__ = [
    "BrokerError",
    "BrokerUnreachable",
    "ClientError",
    "ConsumeContext",
    "ConsumeFromWhere",
    "ConsumeStatus",
    "IllegalConfiguration",
    "LocalTransactionState",
    "MessageListener",
    "MessageModel",
    "MessageRefused",
    "NameServerUnreachable",
    "NoRoute",
    "NotRunning",
    "RequestTimedOut",
    "SendFailed",
    "SendResult",
    "SendStatus",
    "TransactionListener",
    "TransactionSendResult",
]
