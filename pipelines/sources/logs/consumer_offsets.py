"""Reads a consumer group's offsets from a broker's consumerOffset.json (RocketMQ's ConsumerOffsetManager)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from rocketmq_broker.message.errors import UnreadableJson
from rocketmq_broker.message.text.fastjson import standard_json
from rocketmq_broker.platform.files import open_regular

_FILE = Path("config") / "consumerOffset.json"


def read_consumer_offsets(store: Path, consumer_group: str, topic: str) -> Mapping[int, int] | None:
    """Returns the group's next offset in each queue of the topic, or None if the store has no readable file.

    A queue that is not in the result has not been consumed. The file is a few seconds old at most.
    """
    for path in (store / _FILE, (store / _FILE).with_suffix(".json.bak")):
        try:
            with open(path, "rb", opener=open_regular) as file:
                return consumer_offsets_in(file.read(), consumer_group, topic)
        except (OSError, UnreadableJson, msgspec.DecodeError, ValueError, AttributeError):
            continue
    return None


def consumer_offsets_in(content: bytes, consumer_group: str, topic: str) -> Mapping[int, int]:
    """Returns the group's next offset in each queue of the topic, from the file's content.

    Raises UnreadableJson, msgspec.DecodeError, ValueError or AttributeError if the content is malformed.
    """
    document: Any = msgspec.json.decode(standard_json(content))
    offsets = (document.get("offsetTable") or {}).get(f"{topic}@{consumer_group}", {})
    return {int(queue_id): int(offset) for queue_id, offset in offsets.items()}
