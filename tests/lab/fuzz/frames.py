"""Generates frames by structure: valid frames for every request code and both serializers, damaged in one or several layers."""

# ruff: noqa: E501

import json
import random
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from rocketmq_broker.protocol import ext_fields
from rocketmq_broker.protocol.codes import AdminRequestCode, RequestCode
from rocketmq_broker.protocol.headers.pull import PullMessageResponseHeader
from tests.header_types import header_types
from tests.lab.fuzz.bodies import answer_body, request_body
from tests.lab.fuzz.values import Values

CODES: tuple[int, ...] = (*RequestCode, *AdminRequestCode)
_HEADERS: Mapping[str, type[msgspec.Struct]] = header_types()
_OF_CODE = {
    "SEND_MESSAGE_V2": "SendMessageRequestHeaderV2", "SEND_BATCH_MESSAGE": "SendMessageRequestHeaderV2", "CONSUMER_SEND_MSG_BACK": "ConsumerSendMsgBackRequestHeader",
    "GET_ROUTEINFO_BY_TOPIC": "GetRouteInfoRequestHeader", "UNREGISTER_CLIENT": "UnregisterClientRequestHeader", "VIEW_MESSAGE_BY_ID": "ViewMessageRequestHeader",
    "LITE_PULL_MESSAGE": "PullMessageRequestHeader", "SEND_REPLY_MESSAGE": "SendMessageRequestHeader", "SEND_REPLY_MESSAGE_V2": "SendMessageRequestHeaderV2",
    "SEARCH_OFFSET_BY_TIMESTAMP": "SearchOffsetRequestHeader", "UPDATE_AND_CREATE_TOPIC": "CreateTopicRequestHeader", "RESET_CONSUMER_CLIENT_OFFSET": "ResetOffsetRequestHeader",
    "INVOKE_BROKER_TO_RESET_OFFSET": "ResetOffsetRequestHeader", "UNREGISTER_BROKER": "UnRegisterBrokerRequestHeader",
    "DELETE_TOPIC_IN_BROKER": "DeleteTopicRequestHeader", "DELETE_SUBSCRIPTIONGROUP": "DeleteSubscriptionGroupRequestHeader",
}  # fmt: skip


class FrameMaker:
    """A generator of frames. `values` holds the only random generator."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.values = Values(chance)

    def request(self, served: Sequence[int] = CODES) -> tuple[int, bytes]:
        """Returns a request's code, usually one of `served`, and its frame, usually damaged in some layer."""
        chance = self.chance
        code = (
            chance.choice(served if chance.random() < 0.9 else CODES)
            if chance.random() < 0.97
            else chance.choice((-1, 0, 32_767, 65_535, 2**31 - 1, 9_999))
        )
        flag = chance.choice((0, 0, 0, 0, 0, 2, 2, 1, 3, -1, 2**31 - 1)) if chance.random() < 0.3 else 0
        fields = self._fields(self._header_of(code))
        return code, self.frame(code, fields, request_body(self.values, code), flag)

    def answer(self, code: int, opaque: int) -> bytes:
        """Returns the frame of a response to a request with this code."""
        name = code_name(code).replace("_", "").lower() + "responseheader"
        kind = next((kind for other, kind in _HEADERS.items() if other.lower() == name), PullMessageResponseHeader)
        answered = self.chance.choice((0, 0, 0, 0, 0, 1, 10, 17, 19, 20, 21, 22, -1, 2**31 - 1))
        return self.frame(answered, self._fields(kind), answer_body(self.values, code), 1, opaque=opaque, is_whole=True)

    def frame(
        self, code: int, fields: dict[str, Any], body: bytes, flag: int, *, opaque: int | None = None, is_whole: bool = False
    ) -> bytes:
        """Encodes a command, with damage to its fields, to its header and, unless `is_whole`, to its bytes."""
        chance = self.chance
        opaque = chance.randrange(2**31) if opaque is None else opaque
        fields = self._changed_fields(fields)
        remark = self.values.odd_text() if chance.random() < 0.05 else None
        if chance.random() < 0.5:
            kind, header = 0, self._json_header(code, fields, flag, opaque, remark, is_whole)
        else:
            kind, header = 1, self._binary_header(code, fields, flag, opaque, remark, is_whole)
        if len(header) > 0xFFFFFF:
            header = header[:1000]
        frame = (4 + len(header) + len(body)).to_bytes(4) + bytes([kind]) + len(header).to_bytes(3) + header + body
        return frame if is_whole or chance.random() < 0.8 else self._damaged(frame)

    def _header_of(self, code: int) -> type[msgspec.Struct]:
        named = _OF_CODE.get(code_name(code))
        if named is None:
            wanted = code_name(code).replace("_", "").lower() + "requestheader"
            named = next((name for name in _HEADERS if name.lower() == wanted), None)
        if named is None or self.chance.random() < 0.03:
            named = self.chance.choice(list(_HEADERS))
        return _HEADERS[named]

    def _fields(self, kind: type[msgspec.Struct]) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        hints = _hints(kind)
        for name, wire_name in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True):
            if name.startswith("_"):
                continue
            fields[wire_name] = self._value(name, hints[name])
        return fields

    def _value(self, name: str, kinds: frozenset[type]) -> str:
        if bool in kinds:
            return self.chance.choice(("true", "false", "false", "TRUE", "1", ""))
        return str(self.values.number(name)) if int in kinds else self.values.text(name)

    def _changed_fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        if self.chance.random() < 0.6:
            return fields
        changed = dict(fields)
        for name in list(changed):
            draw = self.chance.random()
            if draw < 0.08:
                del changed[name]
            elif draw < 0.16:
                changed[name] = self.values.odd_text()
        if self.chance.random() < 0.1:
            changed[self.values.odd_text()] = self.values.odd_text()
        if self.chance.random() < 0.01:
            changed.update({f"n{number}": "x" for number in range(3000)})
        return changed

    def _json_header(
        self, code: int, fields: dict[str, Any], flag: int, opaque: int, remark: str | None, is_whole: bool
    ) -> bytes:
        header: dict[str, Any] = {
            "code": code, "language": self.chance.choice(("JAVA", "GO", "PYTHON", 0, "", "x" * 99)), "version": 401, "opaque": opaque,
            "flag": flag, "remark": remark, "extFields": fields, "serializeTypeCurrentRPC": "JSON",
        }  # fmt: skip
        if not is_whole and self.chance.random() < 0.15:
            return self.values.json_bytes(header)
        if self.chance.random() < 0.1:
            header["extFields"] = {name: self.values.changed(value) for name, value in fields.items()}
        if self.chance.random() < 0.05:
            items = [*header.items(), *random.Random(opaque).sample(list(header.items()), 3)]
            return ("{" + ",".join(f"{json.dumps(name)}:{json.dumps(value)}" for name, value in items) + "}").encode()
        return json.dumps(header).encode()

    def _binary_header(
        self, code: int, fields: dict[str, Any], flag: int, opaque: int, remark: str | None, is_whole: bool
    ) -> bytes:
        texts = {name[:30_000]: str(value) for name, value in fields.items() if name}
        extension = ext_fields.encode_binary(texts)
        said = (remark or "").encode()
        header = b"".join(
            (
                (code & 0xFFFF).to_bytes(2), bytes([self.chance.choice((0, 1, 9, 12, 255))]), (401).to_bytes(2), opaque.to_bytes(4),
                (flag & 0xFFFFFFFF).to_bytes(4), len(said).to_bytes(4), said, len(extension).to_bytes(4), extension,
            )
        )  # fmt: skip
        return self.values.bytes(header) if not is_whole and self.chance.random() < 0.2 else header

    def _damaged(self, frame: bytes) -> bytes:
        draw = self.chance.randrange(5)
        if draw == 0:
            length = self.chance.choice((0, 1, 3, 4, 5, len(frame), 2**24, 2**24 - 5, 2**31 - 1, 2**31, 2**32 - 1))
            return length.to_bytes(4) + frame[4:]
        if draw == 1:
            return frame[:4] + bytes([self.chance.choice((2, 3, 9, 127, 255))]) + frame[5:]
        if draw == 2:
            return frame[:5] + self.chance.choice((0, 1, len(frame), 0xFFFFFF)).to_bytes(3) + frame[8:]
        return self.values.bytes(frame)


def code_name(code: int) -> str:
    """Returns RocketMQ's name of a request code, or "UNKNOWN"."""
    for codes in (RequestCode, AdminRequestCode):
        if code in codes.__members__.values():
            return codes(code).name
    return "UNKNOWN"


_HINTS: dict[type, dict[str, frozenset[type]]] = {}


def _hints(kind: type[msgspec.Struct]) -> dict[str, frozenset[type]]:
    """Returns the plain types that each field accepts."""
    if kind not in _HINTS:
        _HINTS[kind] = {name: frozenset(_plain(hint)) for name, hint in typing.get_type_hints(kind).items()}
    return _HINTS[kind]


def _plain(hint: Any) -> list[type]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return [one for part in typing.get_args(hint) for one in _plain(part)]
    return [hint] if isinstance(hint, type) else []
