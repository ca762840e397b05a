"""RocketMQ's remoting protocol: bytes in, commands out, and back. No socket and no clock."""

from broker.protocol.codes import CURRENT_VERSION, LanguageCode, RequestCode, ResponseCode, SerializeType
from broker.protocol.command import RemotingCommand, ReplyTo, encode_request, encode_response
from broker.protocol.command_header import CommandHeader
from broker.protocol.errors import BodyError, FrameError, HeaderError, ProtocolError
from broker.protocol.frame import MAX_FRAME_LENGTH, FrameDecoder

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
