"""What fastjson does to maps whose keys are no strings: it writes number and object keys without quotes.

    {"brokerAddrs":{0:"127.0.0.1:10911"}}
    {"offsetTable":{{"brokerName":"a","queueId":0,"topic":"t"}:{"maxOffset":7}}}

`standard_json` turns such text into JSON, an object key becoming the string of its own text; `number_keyed` and `object_keyed`
write it. Apache's Java tools and the Go client expect these forms where Apache's broker writes them.
"""

import re
from collections.abc import Callable, Iterable, Mapping

import msgspec

from broker.protocol.errors import BodyError

_TOKEN = re.compile(rb'\s+|"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s"{}\[\],:]+', re.DOTALL)
_MAX_DEPTH = 64


def standard_json(data: bytes) -> bytes:
    """The same as standard JSON. Raises BodyError where braces or quotes do not match."""
    reader = _Reader(data)
    text = reader.value(0)
    reader.expect_end()
    return text


def number_keyed(entries: Mapping[int, object]) -> msgspec.Raw:
    """A map from numbers, their keys unquoted."""
    return msgspec.Raw(b"{" + b",".join([b"%d:%b" % (key, msgspec.json.encode(value)) for key, value in entries.items()]) + b"}")


def object_keyed(entries: Iterable[tuple[object, object]]) -> msgspec.Raw:
    """A map from objects, their keys unquoted."""
    encode = msgspec.json.encode
    return msgspec.Raw(b"{" + b",".join([encode(key) + b":" + encode(value) for key, value in entries]) + b"}")


class _Reader:
    """Walks over the tokens of a text and puts the parts together anew."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        self._token = b""
        self._advance()

    def value(self, depth: int) -> bytes:
        if depth > _MAX_DEPTH:
            raise BodyError(f"a body nested deeper than {_MAX_DEPTH}")
        if self._token == b"{":
            return b"{" + self._items(b"}", self._member, depth + 1) + b"}"
        if self._token == b"[":
            return b"[" + self._items(b"]", self.value, depth + 1) + b"]"
        if self._token in b"}],:":
            raise BodyError(
                f"a body with {self._token.decode() or 'its end'!r} where a value should be, at byte {self._position}"
            )
        return self._advance()

    def expect_end(self) -> None:
        if self._token:
            raise BodyError(f"a body that goes on after its end, at byte {self._position}")

    def _items(self, closing: bytes, item: Callable[[int], bytes], depth: int) -> bytes:
        self._advance()
        items = []
        while self._token != closing:
            items.append(item(depth))
            if self._token == b",":
                self._advance()
            elif self._token != closing:
                raise BodyError(f"a body without {closing.decode()!r} at byte {self._position}")
        self._advance()
        return b",".join(items)

    def _member(self, depth: int) -> bytes:
        key = self.value(depth)
        if self._advance() != b":":
            raise BodyError(f"a body with a key that has no value, at byte {self._position}")
        if not key.startswith(b'"'):
            key = msgspec.json.encode(key.decode(errors="replace"))
        return key + b":" + self.value(depth)

    def _advance(self) -> bytes:
        """Steps to the next token and returns the one left behind."""
        left = self._token
        self._token = b""
        while self._position < len(self._data):
            match = _TOKEN.match(self._data, self._position)
            if match is None:
                raise BodyError(f"a body with a string that does not end, at byte {self._position}")
            self._position = match.end()
            if not match[0].isspace():
                self._token = match[0]
                break
        return left
