"""The recorded frames of a transaction of Apache's Java client. Ids and offsets in the frames can be replaced."""

import json
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from rocketmq_broker.message import sysflag
from rocketmq_broker.protocol.codes import RequestCode, SerializeType
from rocketmq_broker.protocol.command import RemotingCommand, encode_request
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.protocol.headers.send import SendMessageRequestHeaderV2, SendMessageResponseHeader
from rocketmq_broker.protocol.headers.transaction import EndTransactionRequestHeader

RECORDING = Path(__file__).resolve().parents[2] / "tests" / "data" / "frames" / "apache-4.9.7.jsonl"
QUEUES = 4


@dataclass(frozen=True, slots=True)
class RecordedTransaction:
    """The headers of a half message and of its decision."""

    half: SendMessageRequestHeaderV2
    end: EndTransactionRequestHeader
    serialize_type: SerializeType

    @classmethod
    def load(cls, serialize_type: SerializeType, topic: str) -> "RecordedTransaction":
        """Loads the first recorded transaction that uses this serializer. `topic` replaces the recorded topic."""
        half = _first_request(RequestCode.SEND_MESSAGE_V2, serialize_type).decode_header(SendMessageRequestHeaderV2)
        end = _first_request(RequestCode.END_TRANSACTION, serialize_type).decode_header(EndTransactionRequestHeader)
        return cls(replace(half, topic=topic), end, serialize_type)

    def half_frame(self, number: int, body: bytes) -> bytes:
        """Returns the frame of a half message. `number` becomes its opaque and part of its message id."""
        properties = self.half.properties.replace(self.end.msg_id, self._unique_key(number))
        header = replace(self.half, queue_id=number % QUEUES, properties=properties)
        return encode_request(RequestCode.SEND_MESSAGE_V2, header, body, opaque=number, serialize_type=self.serialize_type)

    def commit_frame(self, number: int, answer: SendMessageResponseHeader) -> bytes:
        """Returns the frame of the COMMIT for the half message `number`. `answer` is the response to the half message."""
        header = replace(
            self.end,
            producer_group=self.half.producer_group,
            commit_log_offset=int(answer.msg_id[16:], 16),
            tran_state_table_offset=answer.queue_offset,
            commit_or_rollback=sysflag.TRANSACTION_COMMIT_TYPE,
            msg_id=self._unique_key(number),
        )
        return encode_request(RequestCode.END_TRANSACTION, header, opaque=number, oneway=True, serialize_type=self.serialize_type)

    def _unique_key(self, number: int) -> str:
        return f"{self.end.msg_id[:-8]}{number:08X}"


def _first_request(code: RequestCode, serialize_type: SerializeType) -> RemotingCommand:
    for line in RECORDING.read_text().splitlines():
        recorded = json.loads(line)
        if recorded["code"] == code and not recorded["is_response"]:
            command = FrameDecoder().feed(bytes.fromhex(recorded["frame"]))[0]
            if command.serialize_type is serialize_type:
                return command
    raise LookupError(f"{RECORDING} contains no {code.name} request in {serialize_type.name}")
