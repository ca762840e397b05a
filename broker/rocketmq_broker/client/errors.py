"""Exceptions of the client: a base class, and one class for each case that a program may handle differently."""

from rocketmq_broker.message import IllegalMessage


class ClientError(Exception):
    """Base class of all errors of this package."""


class NotRunning(ClientError):
    """The client is not running for the caller: the call was made before `start()`, after `shutdown()` or on another event loop.

    Also raised if the client is started twice.
    """


class IllegalConfiguration(ClientError):
    """A setting is missing or invalid, such as the listener, the subscription, the group name, or a number out of range."""


class MessageRefused(ClientError, IllegalMessage):
    """The message can never be sent: it has no body, is too large, or has an invalid topic. Nothing was sent."""


class NameServerUnreachable(ClientError):
    """No name server responded, so the topic's brokers are unknown. Nothing was sent."""


class NoRoute(ClientError):
    """According to the name servers, no broker has the topic. Nothing was sent."""


class BrokerUnreachable(ClientError):
    """The connection to the broker failed or was lost before the response. The request may or may not have been executed."""


class RequestTimedOut(BrokerUnreachable):
    """The broker did not respond in time. The request may or may not have been executed."""


class UnreadableAnswer(BrokerUnreachable):
    """The response from a broker or name server cannot be decoded. The request may or may not have been executed."""


class BrokerError(ClientError):
    """The broker refused the request."""

    def __init__(self, code: int, remark: str | None, address: str = "") -> None:
        """`code` is RocketMQ's response code, `remark` is the broker's explanation, and `address` is its address."""
        self.code = code
        self.remark = remark or ""
        self.address = address
        super().__init__(f"broker {address or '?'} answered code {code}: {self.remark or 'no remark'}")


class TransactionNotFound(ClientError):
    """No broker has a half message with this transaction id. Nothing was decided."""


class MessagesWithdrawn(ClientError):
    """The listener must stop handling its messages, because the consumer shuts down or another consumer gets the queue.

    Listeners must not catch this exception. The messages count as not consumed. They are delivered again, to this consumer
    or to the queue's next owner, with an unchanged redelivery count.
    """


class SendFailed(ClientError):
    """All attempts to send the message failed. The exception's cause is the last failure.

    The message may or may not be stored.
    """
