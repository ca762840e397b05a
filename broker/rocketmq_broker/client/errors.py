"""The errors of the client: one base, and a class for each reaction of a program."""

from rocketmq_broker.message import IllegalMessage


class ClientError(Exception):
    """Base of all errors of this package."""


class NotRunning(ClientError):
    """A call at the wrong moment: before `start()`, after `shutdown()`, on another event loop, or a second `start()`."""


class IllegalConfiguration(ClientError):
    """A client that cannot start with its settings: no listener, no subscription, an unusable group, a number out of range."""


class MessageRefused(ClientError, IllegalMessage):
    """A message that can never be sent: no body, too large, an unusable topic. Nothing was sent."""


class NameServerUnreachable(ClientError):
    """No answer of any name server, so that the topic's brokers are unknown. Nothing was sent."""


class NoRoute(ClientError):
    """A topic that no broker offers, by the name servers' answers. Nothing was sent."""


class BrokerUnreachable(ClientError):
    """A missing connection to a broker, or one lost before the answer. The broker may or may not have carried out the request."""


class RequestTimedOut(BrokerUnreachable):
    """A missing answer of a broker. The broker may or may not have carried out the request."""


class UnreadableAnswer(BrokerUnreachable):
    """An answer of a broker or name server that cannot be decoded. The request may or may not have been carried out."""


class BrokerError(ClientError):
    """A broker's answer that it refuses the request."""

    def __init__(self, code: int, remark: str | None, address: str = "") -> None:
        """`code` is RocketMQ's response code, `remark` the broker's words, `address` the broker."""
        self.code = code
        self.remark = remark or ""
        self.address = address
        super().__init__(f"broker {address or '?'} answered code {code}: {self.remark or 'without a remark'}")


class TransactionNotFound(ClientError):
    """A transaction id of which no broker has a half message. Nothing was decided."""


class MessagesWithdrawn(ClientError):
    """Messages that a listener must let go: the consumer shuts down, or a rebalance took their queue away.

    A listener does not catch it. The messages count as not consumed: they come again, here or at the queue's next owner, and
    their redelivery count does not change.
    """


class SendFailed(ClientError):
    """A send whose every attempt failed; the last failure is the cause. The message may or may not be stored."""
