"""A message before it is appended to the store (RocketMQ's MessageExtBrokerInner)."""


class InnerMessage:
    """A message's fields before it is stored: all fields of a record except the offsets, the store timestamp and the store host.

    Processors create an instance for each message that they store. The class is not a frozen dataclass, because creating an
    instance would take three times as long.
    """

    __slots__ = (
        "body",
        "body_crc",
        "born_host",
        "born_timestamp",
        "flag",
        "prepared_transaction_offset",
        "properties",
        "queue_id",
        "reconsume_times",
        "sys_flag",
        "tags_code",
        "topic",
    )

    def __init__(
        self,
        topic: bytes,
        queue_id: int,
        body: bytes,
        properties: bytes,
        flag: int,
        sys_flag: int,
        born_timestamp: int,
        born_host: bytes,
        reconsume_times: int = 0,
        prepared_transaction_offset: int = 0,
        tags_code: int | None = None,
        body_crc: int | None = None,
    ) -> None:
        """`properties` are encoded. If `tags_code` or `body_crc` is None, it is computed when it is first needed."""
        self.topic = topic
        self.queue_id = queue_id
        self.body = body
        self.properties = properties
        self.flag = flag
        self.sys_flag = sys_flag
        self.born_timestamp = born_timestamp
        self.born_host = born_host
        self.reconsume_times = reconsume_times
        self.prepared_transaction_offset = prepared_transaction_offset
        self.tags_code = tags_code
        self.body_crc = body_crc
