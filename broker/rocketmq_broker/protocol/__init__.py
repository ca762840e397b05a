"""RocketMQ's remoting protocol, which converts commands to bytes and back. This package opens no socket and reads no clock."""

from rocketmq_broker.protocol.codes import CURRENT_VERSION, LanguageCode, RequestCode, ResponseCode, SerializeType
from rocketmq_broker.protocol.command import RemotingCommand, ReplyTo, encode_request, encode_response
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.errors import BodyError, FrameError, HeaderError, ProtocolError
from rocketmq_broker.protocol.frame import MAX_FRAME_LENGTH, FrameDecoder

__all__ = [
    "CURRENT_VERSION",
    "MAX_FRAME_LENGTH",
    "BodyError",
    "CommandHeader",
    "FrameDecoder",
    "FrameError",
    "HeaderError",
    "LanguageCode",
    "ProtocolError",
    "RemotingCommand",
    "ReplyTo",
    "RequestCode",
    "ResponseCode",
    "SerializeType",
    "encode_request",
    "encode_response",
]
