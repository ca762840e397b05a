"""The writer of fastjson's maps whose keys are no strings: number and object keys without quotes.

    {"brokerAddrs":{0:"127.0.0.1:10911"}}
    {"offsetTable":{{"brokerName":"a","queueId":0,"topic":"t"}:{"maxOffset":7}}}

Apache's Java tools and the Go client expect these forms where Apache's broker writes them.
`rocketmq_broker.message.text.fastjson` reads them.
"""

from collections.abc import Iterable, Mapping

import msgspec


def number_keyed(entries: Mapping[int, object]) -> msgspec.Raw:
    """Encodes a map from numbers, with unquoted keys."""
    return msgspec.Raw(b"{" + b",".join([b"%d:%b" % (key, msgspec.json.encode(value)) for key, value in entries.items()]) + b"}")


def object_keyed(entries: Iterable[tuple[object, object]]) -> msgspec.Raw:
    """Encodes a map from objects, with unquoted keys."""
    encode = msgspec.json.encode
    return msgspec.Raw(b"{" + b",".join([encode(key) + b":" + encode(value) for key, value in entries]) + b"}")
