"""The losses between clients and a broker: decides for each frame whether it arrives."""

from rocketmq_broker.protocol.codes import SEND_REQUESTS, RequestCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.headers import EndTransactionRequestHeader


class Losses:
    """The losses still to come, on any connection."""

    def __init__(self) -> None:
        """Starts without losses."""
        self.decisions_to_lose = 0
        self.answers_to_lose: set[str] = set()
        """The orders of which the next message's answer is lost."""

    def take_answer(self, message: RemotingCommand) -> bool:
        """Returns whether to lose the answer to the message, and counts the loss. An order's message has its id in the body."""
        found = {order_id for order_id in self.answers_to_lose if order_id.encode() in message.body}
        self.answers_to_lose -= found
        return bool(found)


class Line:
    """One connection from a client to the broker."""

    def __init__(self, losses: Losses) -> None:
        """`losses` is shared by all connections."""
        self._losses = losses
        self._answers_to_lose: set[int] = set()
        """The opaques of requests whose answers do not arrive."""

    def reaches_broker(self, command: RemotingCommand) -> bool:
        """Returns whether the client's frame arrives. Chooses here, by its request, an answer that will be lost."""
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
    """Returns whether it is a COMMIT or a ROLLBACK; UNKNOWN decides nothing."""
    if command.code != RequestCode.END_TRANSACTION:
        return False
    return command.decode_header(EndTransactionRequestHeader).commit_or_rollback != 0
