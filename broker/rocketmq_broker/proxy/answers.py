"""The statuses of responses, and their mapping from the broker's response codes (RocketMQ's ResponseBuilder)."""

from typing import Final

from rocketmq_broker.protocol.codes import PopResponseCode, ResponseCode
from rocketmq_broker.proxy.protos import definition_pb2 as api
from rocketmq_broker.remoting.dispatcher import INTERNAL_ERROR

OK: Final = api.Status(code=api.OK, message="OK")

_CODES: Final[dict[int, api.Code]] = {
    ResponseCode.SUCCESS: api.OK,
    ResponseCode.FLUSH_DISK_TIMEOUT: api.MASTER_PERSISTENCE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: api.HA_NOT_AVAILABLE,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: api.SLAVE_PERSISTENCE_TIMEOUT,
    ResponseCode.SYSTEM_BUSY: api.TOO_MANY_REQUESTS,
    ResponseCode.REQUEST_CODE_NOT_SUPPORTED: api.NOT_IMPLEMENTED,
    ResponseCode.MESSAGE_ILLEGAL: api.MESSAGE_CORRUPTED,
    ResponseCode.NO_PERMISSION: api.FORBIDDEN,
    ResponseCode.TOPIC_NOT_EXIST: api.TOPIC_NOT_FOUND,
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST: api.CONSUMER_GROUP_NOT_FOUND,
    ResponseCode.SERVICE_NOT_AVAILABLE: api.HA_NOT_AVAILABLE,
    ResponseCode.SUBSCRIPTION_PARSE_FAILED: api.ILLEGAL_FILTER_EXPRESSION,
    PopResponseCode.INVALID_PARAMETER: api.BAD_REQUEST,
}
_ACL_ERROR: Final = "org.apache.rocketmq.acl.common.AclException: "
_NO_PERMISSION: Final = "No default permission", "Need admin permission"


class CallRefused(Exception):
    """Raised by a method to respond to its call with a status other than OK."""

    def __init__(self, code: api.Code, message: str) -> None:
        super().__init__(message)
        self.status = api.Status(code=code, message=message)


def refused(code: int, remark: str | None, system_error: api.Code = api.INTERNAL_SERVER_ERROR) -> CallRefused:
    """Returns the error for a broker's response other than SUCCESS. SYSTEM_ERROR is mapped to `system_error`."""
    remark = remark or f"the broker answered with code {code}"
    if remark.startswith(_ACL_ERROR):
        reason = remark.removeprefix(_ACL_ERROR)
        return CallRefused(api.FORBIDDEN if reason.startswith(_NO_PERMISSION) else api.UNAUTHORIZED, reason)
    if code == ResponseCode.SYSTEM_ERROR and remark != INTERNAL_ERROR:
        return CallRefused(system_error, remark)
    return CallRefused(_CODES.get(code, api.INTERNAL_SERVER_ERROR), remark)
