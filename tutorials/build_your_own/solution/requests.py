"""Stages 1 to 3 and 7: handles the clients' requests."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from tutorials.build_your_own.solution import record
from tutorials.build_your_own.solution.check_back import CheckBack, Send
from tutorials.build_your_own.solution.commit_log import LogFull
from tutorials.build_your_own.solution.consume_queue import Unit, tags_code
from tutorials.build_your_own.solution.frames import RESPONSE_FLAG, Command
from tutorials.build_your_own.solution.message_store import MessageStore
from tutorials.build_your_own.solution.record import Message, Record
from tutorials.build_your_own.solution.transactions import OWN_TOPICS, Refused, Transactions


class Code(IntEnum):
    """Request codes."""

    SEND_MESSAGE = 10
    PULL_MESSAGE = 11
    HEART_BEAT = 34
    END_TRANSACTION = 37


class Answer(IntEnum):
    """Response codes."""

    SUCCESS = 0
    SYSTEM_ERROR = 1
    REQUEST_CODE_NOT_SUPPORTED = 3
    NO_PERMISSION = 16
    TOPIC_NOT_EXIST = 17
    PULL_NOT_FOUND = 19
    PULL_RETRY_IMMEDIATELY = 20
    PULL_OFFSET_MOVED = 21


@dataclass(frozen=True, slots=True)
class Client:
    """The connection of a client."""

    host: bytes
    """The client's address, encoded as in records."""
    send: Send


class Requests:
    """Handles each request with the method for its request code."""

    def __init__(self, store: MessageStore, transactions: Transactions, check_back: CheckBack) -> None:
        self._store = store
        self.transactions = transactions
        self._check_back = check_back
        self._by_code: Mapping[int, Callable[[Command, Client], Command]] = {
            Code.SEND_MESSAGE: self.send_message,
            Code.PULL_MESSAGE: self.pull_message,
            Code.HEART_BEAT: self.heart_beat,
            Code.END_TRANSACTION: self.end_transaction,
        }

    def answer(self, request: Command, client: Client) -> Command:
        """Returns the response to a request. If the request fails, returns a response with an error code instead of raising."""
        method = self._by_code.get(request.code)
        if method is None:
            return answer(request, Answer.REQUEST_CODE_NOT_SUPPORTED, remark=f"unsupported request code {request.code}")
        try:
            return method(request, client)
        except (Refused, LogFull, KeyError, ValueError) as error:
            return answer(request, Answer.SYSTEM_ERROR, remark=str(error))

    def heart_beat(self, request: Command, client: Client) -> Command:
        """Registers the client as a producer of its producer groups."""
        for producer in json.loads(request.body).get("producerDataSet", ()):
            online = self._check_back.producers.setdefault(producer["groupName"], [])
            if client.send not in online:
                online.append(client.send)
        return answer(request, Answer.SUCCESS)

    def send_message(self, request: Command, client: Client) -> Command:
        """Stores a message or a half message."""
        fields = request.fields
        if fields["topic"] in OWN_TOPICS:
            return answer(request, Answer.NO_PERMISSION, remark=f"topic {fields['topic']} is reserved for the broker")
        message = Message(
            topic=fields["topic"],
            queue_id=int(fields["queueId"]),
            body=request.body,
            properties=record.decode_properties(fields.get("properties", "").encode()),
            flag=int(fields["flag"]),
            # Only the broker sets the transaction bits of a record, so the client's bits are not trusted.
            sys_flag=int(fields["sysFlag"]) & ~record.TRANSACTION_BITS,
            born_timestamp=int(fields["bornTimestamp"]),
            born_host=client.host,
        )
        if message.properties.get("TRAN_MSG") == "true":
            stored = self.transactions.prepare(message, fields["producerGroup"])
        else:
            [stored] = self._store.append(message)
        return answer(request, Answer.SUCCESS, place_of(stored, message.queue_id))

    def pull_message(self, request: Command, client: Client) -> Command:
        """Returns the records of a queue, beginning at a queue offset."""
        topic, queue_id, offset = request.fields["topic"], int(request.fields["queueId"]), int(request.fields["queueOffset"])
        if topic not in self._store.topics:
            return answer(request, Answer.TOPIC_NOT_EXIST, remark=f"topic {topic} does not exist")
        units = self._store.units(topic, queue_id)
        taken = units[offset : offset + int(request.fields["maxMsgNums"])]
        wanted = [unit for unit in taken if is_wanted(unit, request.fields.get("subscription", "*"))]
        found = {"nextBeginOffset": min(offset, len(units)) + len(taken), "minOffset": 0, "maxOffset": len(units)}
        fields = {"suggestWhichBrokerId": "0", **{name: str(value) for name, value in found.items()}}
        code = pull_code(offset, len(units), has_found=bool(wanted))
        return answer(request, code, fields, self._store.read(wanted))

    def end_transaction(self, request: Command, client: Client) -> Command:
        """Handles the decision on a transaction: COMMIT, ROLLBACK or UNKNOWN. Raises Refused."""
        fields = request.fields
        self.transactions.end(
            int(fields["commitOrRollback"]),
            int(fields["commitLogOffset"]),
            int(fields["tranStateTableOffset"]),
            fields["producerGroup"],
        )
        return answer(request, Answer.SUCCESS)


def answer(
    request: Command, code: Answer, fields: Mapping[str, str] | None = None, body: bytes = b"", remark: str = ""
) -> Command:
    """Returns a response with the opaque of the request."""
    return Command(code, request.opaque, RESPONSE_FLAG, fields or {}, body, remark)


def place_of(stored: Record, queue_id: int) -> Mapping[str, str]:
    """Returns the response fields with the position of a stored message.

    msgId is the hexadecimal form of 16 bytes: the broker's address, its port, and the commit log offset.
    """
    msg_id = (stored.store_host + stored.commit_log_offset.to_bytes(8)).hex().upper()
    return {"msgId": msg_id, "queueId": str(queue_id), "queueOffset": str(stored.queue_offset)}


def is_wanted(unit: Unit, subscription: str) -> bool:
    """Returns True if the subscription matches the unit's tag hash. A subscription is `*` or tags separated by `||`."""
    return subscription in ("*", "") or unit.tags_code in {tags_code(tag.strip()) for tag in subscription.split("||")}


def pull_code(offset: int, end: int, *, has_found: bool) -> Answer:
    """Returns the response code of a pull. `offset` is the requested queue offset; `end` is the offset after the last message."""
    if has_found:
        return Answer.SUCCESS
    if offset == end:
        return Answer.PULL_NOT_FOUND
    return Answer.PULL_RETRY_IMMEDIATELY if offset < end else Answer.PULL_OFFSET_MOVED
