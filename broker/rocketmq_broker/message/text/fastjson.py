"""Reads and writes fastjson's maps, which may have unquoted numbers or objects as keys.

    {"brokerAddrs":{0:"127.0.0.1:10911"}}
    {"offsetTable":{{"brokerName":"a","queueId":0,"topic":"t"}:{"maxOffset":7}}}

Request and response bodies and the store's config files contain such maps. Apache's Java tools and the Go client expect them.
"""

import re
from collections.abc import Callable, Iterable, Mapping

import msgspec

from rocketmq_broker.message.errors import UnreadableJson

_TOKEN = re.compile(rb'\s+|"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s"{}\[\],:]+', re.DOTALL)
_MAX_DEPTH = 64


def standard_json(data: bytes) -> bytes:
    """Converts fastjson's text to standard JSON. Converts each key that is not a string to a string.

    Raises UnreadableJson if the text is malformed.
    """
    reader = _Reader(data)
    text = reader.value(0)
    reader.expect_end()
    return text


class _Reader:
    """Reads the tokens of a text in fastjson's format, and joins them into standard JSON."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        self._token = b""
        self._advance()

    def value(self, depth: int) -> bytes:
        if depth > _MAX_DEPTH:
            raise UnreadableJson(f"JSON nested too deeply: at most {_MAX_DEPTH} levels")
        if self._token == b"{":
            return b"{" + self._items(b"}", self._member, depth + 1) + b"}"
        if self._token == b"[":
            return b"[" + self._items(b"]", self.value, depth + 1) + b"]"
        if self._token in b"}],:":
            found = repr(self._token.decode()) if self._token else "the end of the text"
            raise UnreadableJson(f"malformed JSON at byte {self._position}: expected a value, not {found}")
        return self._advance()

    def expect_end(self) -> None:
        if self._token:
            raise UnreadableJson(f"malformed JSON at byte {self._position}: expected the end of the text")

    def _items(self, closing: bytes, item: Callable[[int], bytes], depth: int) -> bytes:
        self._advance()
        items = []
        while self._token != closing:
            items.append(item(depth))
            if self._token == b",":
                self._advance()
            elif self._token != closing:
                raise UnreadableJson(f"malformed JSON at byte {self._position}: expected ',' or {closing.decode()!r}")
        self._advance()
        return b",".join(items)

    def _member(self, depth: int) -> bytes:
        key = self.value(depth)
        if self._advance() != b":":
            raise UnreadableJson(f"malformed JSON at byte {self._position}: expected ':' after a key")
        if not key.startswith(b'"'):
            key = msgspec.json.encode(key.decode(errors="replace"))
        return key + b":" + self.value(depth)

    def _advance(self) -> bytes:
        """Moves to the next token, and returns the previous one."""
        left = self._token
        self._token = b""
        while self._position < len(self._data):
            match = _TOKEN.match(self._data, self._position)
            if match is None:
                raise UnreadableJson(f"malformed JSON at byte {self._position}: unterminated string")
            self._position = match.end()
            if not match[0].isspace():
                self._token = match[0]
                break
        return left


def number_keyed(entries: Mapping[int, object]) -> msgspec.Raw:
    """Encodes a map whose keys are unquoted numbers, as in fastjson."""
    return msgspec.Raw(b"{" + b",".join([b"%d:%b" % (key, msgspec.json.encode(value)) for key, value in entries.items()]) + b"}")


def object_keyed(entries: Iterable[tuple[object, object]]) -> msgspec.Raw:
    """Encodes a map whose keys are unquoted JSON objects, as in fastjson."""
    encode = msgspec.json.encode
    return msgspec.Raw(b"{" + b",".join([encode(key) + b":" + encode(value) for key, value in entries]) + b"}")
