"""Drops frames between the order service and the broker at armed failpoints.

It is an RPC hook of this project's client. Apache's client has no hooks, so `apache_order_broker` calls it at each step.
"""

from order_service.service_layer.failpoints import LOSE_CHECK_BACK, LOSE_HALF_MESSAGE, LOSE_HALF_MESSAGE_ANSWER
from rocketmq_broker.client import RemotingCommand, RequestCode
from rocketmq_broker.message import properties
from service_runtime.failing.armed_failpoints import FailedOnPurpose, Failpoints

_PROPERTIES_OF_V2 = "i"


class FailingNetwork:
    """An RPC hook (`rocketmq_broker.client.RpcHook`). It drops a frame by raising an error, as if the connection had failed."""

    def __init__(self, failpoints: Failpoints) -> None:
        """`failpoints` are the armed failpoints."""
        self._failpoints = failpoints
        self._decisions_to_lose: dict[str, str] = {}

    def lose_decision(self, transaction_id: str, failpoint: str) -> None:
        """Drops the next END_TRANSACTION of the transaction. Thread-safe."""
        self._decisions_to_lose[transaction_id] = failpoint

    def half_message_leaves(self, body: bytes) -> None:
        """Raises FailedOnPurpose if the half message with this body is to be dropped."""
        self._lose_if_hit(LOSE_HALF_MESSAGE, body)

    def half_message_is_answered(self, body: bytes, transaction_id: str | None) -> None:
        """Raises FailedOnPurpose if the answer to the stored half message is to be dropped."""
        self._lose_if_hit(LOSE_HALF_MESSAGE_ANSWER, body, transaction_id)

    def check_back_arrives(self, body: bytes, transaction_id: str | None) -> None:
        """Raises FailedOnPurpose if the check-back is to be dropped."""
        self._lose_if_hit(LOSE_CHECK_BACK, body, transaction_id)

    def decision_leaves(self, transaction_id: str) -> None:
        """Raises FailedOnPurpose if the transaction's decision is to be dropped."""
        failpoint = self._decisions_to_lose.pop(transaction_id, None)
        if failpoint is not None:
            raise FailedOnPurpose(failpoint)

    def do_before_request(self, address: str, request: RemotingCommand) -> None:
        """Drops outgoing half messages and decisions, and incoming check-backs."""
        if request.code == RequestCode.SEND_MESSAGE_V2:
            self.half_message_leaves(request.body)
        elif request.code == RequestCode.CHECK_TRANSACTION_STATE:
            self.check_back_arrives(request.body, request.ext_fields().get("transactionId"))
        elif request.code == RequestCode.END_TRANSACTION:
            self.decision_leaves(request.ext_fields()["msgId"])

    def do_after_response(self, address: str, request: RemotingCommand, response: RemotingCommand) -> None:
        """Drops the answer to a stored half message."""
        if request.code == RequestCode.SEND_MESSAGE_V2:
            encoded = request.ext_fields().get(_PROPERTIES_OF_V2, "").encode()
            self.half_message_is_answered(request.body, properties.find(encoded, properties.UNIQUE_KEY))

    def _lose_if_hit(self, failpoint: str, content: bytes, transaction_id: str | None = None) -> None:
        if self._failpoints.is_hit(failpoint, content, transaction_id):
            raise FailedOnPurpose(failpoint)
