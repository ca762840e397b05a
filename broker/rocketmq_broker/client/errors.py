"""What can go wrong for a program that uses the client: one base, and a class for each thing the program can do about it."""

from rocketmq_broker.message import IllegalMessage


class ClientError(Exception):
    """Base of all errors of this package."""


class NotRunning(ClientError):
    """The call came at the wrong moment: before `start()`, after `shutdown()`, on another event loop, or `start()` twice."""


class IllegalConfiguration(ClientError):
    """The client cannot start as it was set up: no listener, no subscription, an unusable group name, a number out of range."""


class MessageRefused(ClientError, IllegalMessage):
    """The message can never be sent: no body, too large, an unusable topic. Nothing was sent."""


class NameServerUnreachable(ClientError):
    """No name server answered, so nobody could say where the topic's brokers are. Nothing was sent."""


class NoRoute(ClientError):
    """The name servers answered, but no broker offers the topic. Nothing was sent."""


class BrokerUnreachable(ClientError):
    """A broker could not be reached, or the connection broke before its answer. It may or may not have done what was asked."""


class RequestTimedOut(BrokerUnreachable):
    """A broker did not answer in time. It may or may not have done what was asked."""


class UnreadableAnswer(BrokerUnreachable):
    """What a broker or name server answered makes no sense. It may or may not have done what was asked."""


class BrokerError(ClientError):
    """A broker answered that it will not do it."""

    def __init__(self, code: int, remark: str | None, address: str = "") -> None:
        """`code` is RocketMQ's response code, `remark` the broker's words, `address` the broker."""
        self.code = code
        self.remark = remark or ""
        self.address = address
        super().__init__(f"broker {address or '?'} answered code {code}: {self.remark or 'without a remark'}")


class MessagesWithdrawn(ClientError):
    """The messages in a listener's hands are no longer its own: the consumer shuts down, or a rebalance took their queue away.

    A listener lets it pass. The messages count as not consumed: they come again, here or at the queue's next owner, and their
    redelivery count stays what it is.
    """


class SendFailed(ClientError):
    """Every attempt to send the message failed; the last failure is the cause. It may or may not be stored."""
