"""Decides which frames between clients and a broker are dropped."""

from rocketmq_broker.protocol.codes import SEND_REQUESTS, RequestCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.headers.transaction import EndTransactionRequestHeader


class Losses:
    """The frames to drop, shared by all connections."""

    def __init__(self) -> None:
        """Creates an object that drops no frames."""
        self.decisions_to_lose = 0
        self.answers_to_lose: set[str] = set()
        """The ids of the orders for which the response to the next message is dropped."""

    def take_answer(self, message: RemotingCommand) -> bool:
        """Returns True if the response to this message must be dropped, and removes the message's order from `answers_to_lose`.

        Finds the order by its id in the message's body.
        """
        found = {order_id for order_id in self.answers_to_lose if order_id.encode() in message.body}
        self.answers_to_lose -= found
        return bool(found)


class Line:
    """A connection between a client and the broker."""

    def __init__(self, losses: Losses) -> None:
        """Creates a connection. `losses` is shared by all connections."""
        self._losses = losses
        self._answers_to_lose: set[int] = set()
        """The opaques of requests whose responses are dropped."""

    def reaches_broker(self, command: RemotingCommand) -> bool:
        """Returns True if this frame from the client is delivered. Also decides whether the response to it will be dropped."""
        if command.is_response:
            return True
        if command.code in SEND_REQUESTS and self._losses.take_answer(command):
            self._answers_to_lose.add(command.opaque)
        if self._losses.decisions_to_lose and _decides(command):
            self._losses.decisions_to_lose -= 1
            return False
        return True

    def reaches_client(self, command: RemotingCommand) -> bool:
        """Returns True if this frame from the broker is delivered."""
        if command.is_response and command.opaque in self._answers_to_lose:
            self._answers_to_lose.remove(command.opaque)
            return False
        return True


def _decides(command: RemotingCommand) -> bool:
    """Returns True if the command is a COMMIT or a ROLLBACK."""
    if command.code != RequestCode.END_TRANSACTION:
        return False
    return command.decode_header(EndTransactionRequestHeader).commit_or_rollback != 0
