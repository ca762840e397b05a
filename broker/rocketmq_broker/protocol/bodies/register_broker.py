"""A broker's registration of its topics at a name server (RocketMQ's RegisterBrokerBody), in JSON or compressed.

The compressed form is deflated:

    LENGTH 4 | data version, JSON | TOPICS 4 | (LENGTH 4 | topic) ... | LENGTH 4 | filter servers, JSON

Each topic is "name readQueueNums writeQueueNums perm topicFilterType". Brokers of RocketMQ 5 add attributes, which are ignored
because routes do not contain them.
"""

import struct
import zlib
from collections.abc import Generator
from typing import Final

import msgspec

from rocketmq_broker.message.configs import TopicConfig
from rocketmq_broker.protocol.bodies.topic import DataVersion, TopicConfigSerializeWrapper
from rocketmq_broker.protocol.body import Body, decode_body
from rocketmq_broker.protocol.errors import BodyError

MAX_INFLATED: Final = 8 * 1024 * 1024
"""The maximum length of an inflated body in bytes. Inflating it blocks the event loop for at most about 20 ms."""
MAX_TOPICS: Final = 65_536
"""The maximum number of topics in a compressed body."""

_TOPICS_AT_ONCE: Final = 200
_INT32 = struct.Struct(">i")


class RegisterBrokerBody(Body):
    """The body of REGISTER_BROKER."""

    topic_config_serialize_wrapper: TopicConfigSerializeWrapper = msgspec.field(default_factory=TopicConfigSerializeWrapper)
    filter_server_list: list[str] = []

    def encode_compressed(self) -> bytes:
        """Encodes the body in the compressed form, for a header with `compressed` set."""
        wrapper = self.topic_config_serialize_wrapper
        parts = [_sized(wrapper.data_version.encode()), _INT32.pack(len(wrapper.topic_config_table))]
        parts += [_sized(_topic_text(topic).encode()) for topic in wrapper.topic_config_table.values()]
        parts.append(_sized(msgspec.json.encode(self.filter_server_list)))
        return zlib.compress(b"".join(parts), 9)

    @classmethod
    def read_compressed(cls, data: bytes, *, max_topics: int = MAX_TOPICS) -> Generator[None, None, "RegisterBrokerBody"]:
        """Decodes a compressed body in steps, because it may contain many topics. Raises BodyError."""
        reader = _SizedParts(_inflate(data))
        version = DataVersion.decode(reader.next_part())
        count = reader.next_int()
        if count > max_topics:
            raise BodyError(f"too many topics in a compressed registration: {count}, at most {max_topics}")
        topics = {}
        for number in range(count):
            if number % _TOPICS_AT_ONCE == 0:
                yield
            topic = _parse_topic(reader.next_part().decode(errors="replace"))
            topics[topic.topic_name] = topic
        return cls(
            topic_config_serialize_wrapper=TopicConfigSerializeWrapper(topic_config_table=topics, data_version=version),
            filter_server_list=decode_body(list[str], reader.next_part()),
        )


class _SizedParts:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def next_int(self) -> int:
        try:
            number: int = _INT32.unpack_from(self._data, self._position)[0]
        except struct.error:
            raise BodyError(f"compressed registration is truncated at byte {self._position}") from None
        self._position += _INT32.size
        return number

    def next_part(self) -> bytes:
        length = self.next_int()
        start = self._position
        self._position += length
        if length < 0 or self._position > len(self._data):
            raise BodyError(f"invalid length in a compressed registration: {length}, at most {len(self._data) - start}")
        return self._data[start : self._position]


def _inflate(data: bytes) -> bytes:
    inflater = zlib.decompressobj()
    try:
        inflated = inflater.decompress(data, MAX_INFLATED)
    except zlib.error as error:
        raise BodyError(f"compressed registration cannot be inflated: {error}") from None
    if not inflater.eof:
        raise BodyError(f"compressed registration is truncated or too long: at most {MAX_INFLATED} bytes when inflated")
    return inflated


def _sized(data: bytes) -> bytes:
    return _INT32.pack(len(data)) + data


def _topic_text(topic: TopicConfig) -> str:
    return f"{topic.topic_name} {topic.read_queue_nums} {topic.write_queue_nums} {topic.perm} {topic.topic_filter_type}"


def _parse_topic(text: str) -> TopicConfig:
    try:
        name, read_queue_nums, write_queue_nums, perm, filter_type, *_ = text.split(" ")
        return TopicConfig(
            topic_name=name,
            read_queue_nums=int(read_queue_nums),
            write_queue_nums=int(write_queue_nums),
            perm=int(perm),
            topic_filter_type=filter_type,
        )
    except ValueError:
        raise BodyError(f"compressed registration has an invalid topic: {text!r}") from None
