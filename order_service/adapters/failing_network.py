"""Drops frames between the order service and the broker at armed failpoints."""

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

    def do_before_request(self, address: str, request: RemotingCommand) -> None:
        """Drops outgoing half messages and decisions, and incoming check-backs."""
        if request.code == RequestCode.SEND_MESSAGE_V2:
            self._lose_if_hit(LOSE_HALF_MESSAGE, request.body)
        elif request.code == RequestCode.CHECK_TRANSACTION_STATE:
            self._lose_if_hit(LOSE_CHECK_BACK, request.body, request.ext_fields().get("transactionId"))
        elif request.code == RequestCode.END_TRANSACTION:
            failpoint = self._decisions_to_lose.pop(request.ext_fields()["msgId"], None)
            if failpoint is not None:
                raise FailedOnPurpose(failpoint)

    def do_after_response(self, address: str, request: RemotingCommand, response: RemotingCommand) -> None:
        """Drops the answer to a stored half message."""
        if request.code == RequestCode.SEND_MESSAGE_V2:
            encoded = request.ext_fields().get(_PROPERTIES_OF_V2, "").encode()
            self._lose_if_hit(LOSE_HALF_MESSAGE_ANSWER, request.body, properties.find(encoded, properties.UNIQUE_KEY))

    def _lose_if_hit(self, failpoint: str, content: bytes, transaction_id: str | None = None) -> None:
        if self._failpoints.is_hit(failpoint, content, transaction_id):
            raise FailedOnPurpose(failpoint)
