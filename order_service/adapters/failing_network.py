"""Loses frames between the order service and its broker where a failpoint is armed, as an RPC hook of the client."""

from order_service.service_layer.armed_failpoints import LOSE_CHECK_BACK, LOSE_HALF_MESSAGE, LOSE_HALF_MESSAGE_ANSWER
from rocketmq_broker.client import RemotingCommand, RequestCode
from rocketmq_broker.message import properties
from service_runtime.failing.armed_failpoints import ArmedFailpoints, FailedOnPurpose

_PROPERTIES_OF_V2 = "i"


class FailingNetwork:
    """See `rocketmq_broker.client.RpcHook`. What it raises stops the frame: the client sees a connection that failed."""

    def __init__(self, failpoints: ArmedFailpoints) -> None:
        """`failpoints` says what is armed."""
        self._failpoints = failpoints
        self._decisions_to_lose: dict[str, str] = {}

    def lose_decision(self, transaction_id: str, failpoint: str) -> None:
        """The next END_TRANSACTION of the transaction does not leave; for any thread."""
        self._decisions_to_lose[transaction_id] = failpoint

    def do_before_request(self, address: str, request: RemotingCommand) -> None:
        """Stops half messages and decisions that leave, and check-backs that come."""
        if request.code == RequestCode.SEND_MESSAGE_V2:
            self._lose_if_hit(LOSE_HALF_MESSAGE, request.body)
        elif request.code == RequestCode.CHECK_TRANSACTION_STATE:
            self._lose_if_hit(LOSE_CHECK_BACK, request.body, request.ext_fields().get("transactionId"))
        elif request.code == RequestCode.END_TRANSACTION:
            failpoint = self._decisions_to_lose.pop(request.ext_fields()["msgId"], None)
            if failpoint is not None:
                raise FailedOnPurpose(failpoint)

    def do_after_response(self, address: str, request: RemotingCommand, response: RemotingCommand) -> None:
        """Stops the answer to a half message that the broker has stored."""
        if request.code == RequestCode.SEND_MESSAGE_V2:
            encoded = request.ext_fields().get(_PROPERTIES_OF_V2, "").encode()
            self._lose_if_hit(LOSE_HALF_MESSAGE_ANSWER, request.body, properties.find(encoded, properties.UNIQUE_KEY))

    def _lose_if_hit(self, failpoint: str, content: bytes, transaction_id: str | None = None) -> None:
        if self._failpoints.is_hit(failpoint, content, transaction_id):
            raise FailedOnPurpose(failpoint)
