"""Decides which frames between clients and a broker are lost."""

from rocketmq_broker.protocol.codes import SEND_REQUESTS, RequestCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.headers import EndTransactionRequestHeader


class Losses:
    """The pending losses of all connections."""

    def __init__(self) -> None:
        """Creates an empty set of pending losses."""
        self.decisions_to_lose = 0
        self.answers_to_lose: set[str] = set()
        """The orders for which the answer to the next message is lost."""

    def take_answer(self, message: RemotingCommand) -> bool:
        """Returns whether to lose the answer to this message, and counts the loss. The message's body has the order id."""
        found = {order_id for order_id in self.answers_to_lose if order_id.encode() in message.body}
        self.answers_to_lose -= found
        return bool(found)


class Line:
    """A connection between a client and the broker."""

    def __init__(self, losses: Losses) -> None:
        """`losses` is shared by all connections."""
        self._losses = losses
        self._answers_to_lose: set[int] = set()
        """The opaques of requests whose answers are lost."""

    def reaches_broker(self, command: RemotingCommand) -> bool:
        """Returns whether the client's frame arrives. Also decides whether its answer will be lost."""
        if command.is_response:
            return True
        if command.code in SEND_REQUESTS and self._losses.take_answer(command):
            self._answers_to_lose.add(command.opaque)
        if self._losses.decisions_to_lose and _decides(command):
            self._losses.decisions_to_lose -= 1
            return False
        return True

    def reaches_client(self, command: RemotingCommand) -> bool:
        """Returns whether the broker's frame arrives."""
        if command.is_response and command.opaque in self._answers_to_lose:
            self._answers_to_lose.remove(command.opaque)
            return False
        return True


def _decides(command: RemotingCommand) -> bool:
    """Returns whether the command is a COMMIT or a ROLLBACK."""
    if command.code != RequestCode.END_TRANSACTION:
        return False
    return command.decode_header(EndTransactionRequestHeader).commit_or_rollback != 0
