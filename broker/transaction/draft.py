"""A message as the store is asked to append it."""

from typing import NamedTuple


class Draft(NamedTuple):
    """All of a record but what the store adds: its offsets, its store timestamp and its store host."""

    topic: bytes
    queue_id: int
    body: bytes
    properties: bytes
    flag: int
    sys_flag: int
    born_timestamp: int
    born_host: bytes
    reconsume_times: int
    prepared_transaction_offset: int
    tags_code: int
    crc: int
