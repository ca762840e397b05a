"""Fuzzes the calls of RocketMQ 5's clients. Requests are generated from their descriptors and go straight to the handlers."""

import asyncio
import random
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from rocketmq_broker.proxy.connections.call import Call, CallEnded, Method
from rocketmq_broker.proxy.protos import definition_pb2 as api
from rocketmq_broker.proxy.protos import service_pb2 as service
from tests.lab.fuzz.servers import running_broker
from tests.lab.fuzz.watch import Watch

HONEST_EVERY = 250
DAMAGED_SHARE = 0.5
MAX_DEPTH = 6
_PORT = 4711
_PREFIX_BYTES = 5
_NUMBERS = (0, 1, -1, 2, 5, 127, 999, 2**31 - 1, -(2**31))
_LONG_NUMBERS = (*_NUMBERS, 1000, 60_000, 253_402_300_799, 2**53, 2**63 - 1, -(2**63))
_INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32: _NUMBERS,
    FieldDescriptor.CPPTYPE_INT64: _LONG_NUMBERS,
    FieldDescriptor.CPPTYPE_UINT32: tuple(number for number in _NUMBERS if number >= 0),
    FieldDescriptor.CPPTYPE_UINT64: tuple(number for number in _LONG_NUMBERS if number >= 0),
}
_TEXTS = (
    "orders", "others", "group", "customer-1", "", " ", "a b", "%DLQ%group", "%RETRY%group_orders", "RMQ_SYS_TRANS_HALF_TOPIC",
    "SCHEDULE_TOPIC_XXXX", "%RETRY%", "CID_RMQ_SYS_TRANS", "x" * 600_000,
    "*", "a || b", "price > 10", "((((", "\x01\x02", "x" * 300, "g" * 64, "PGROUP", "DELAY", "-1", "münchen",
)  # fmt: skip


class CallMaker:
    """A generator of requests. Identifiers from responses, such as receipt handles, appear in later requests."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._told: list[str] = []

    def request(self, name: str) -> bytes:
        """Returns the bytes of a request. DAMAGED_SHARE of the requests are damaged."""
        made = (service.TelemetryCommand if name == "Telemetry" else getattr(service, f"{name}Request"))()
        self._fill(made, 0)
        data = bytearray(made.SerializeToString())
        if data and self._chance.random() < DAMAGED_SHARE:
            for _ in range(self._chance.randint(1, 8)):
                data[self._chance.randrange(len(data))] = self._chance.randrange(256)
            del data[self._chance.randint(0, len(data)) :]
        return bytes(data)

    def learn(self, answer: Message) -> None:
        """Keeps the identifiers with which later requests can name existing objects."""
        for field, value in answer.ListFields():
            if field.name in {"receipt_handle", "transaction_id", "message_id"}:
                self._told = [*self._told[-50:], value]
            elif field.type == FieldDescriptor.TYPE_MESSAGE and not isinstance(value, Message):
                for one in value:
                    if isinstance(one, Message):
                        self.learn(one)
            elif isinstance(value, Message):
                self.learn(value)

    def _fill(self, message: Message, depth: int) -> None:
        for field in message.DESCRIPTOR.fields:
            if depth > MAX_DEPTH or self._chance.random() < 0.25:
                continue
            if field.is_repeated:
                self._fill_repeated(getattr(message, field.name), field, depth)
            elif field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
                made = getattr(message, field.name)
                made.SetInParent()
                self._fill(made, depth + 1)
            else:
                setattr(message, field.name, self._value(field))

    def _fill_repeated(self, values: Any, field: Any, depth: int) -> None:
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            values.update({self._text(): self._text() for _ in range(self._chance.randint(0, 3))})
            return
        for _ in range(self._chance.choice((1, 1, 1, 2, 5))):
            if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
                self._fill(values.add(), depth + 1)
            else:
                values.append(self._value(field))

    def _value(self, field: Any) -> Any:
        if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
            return self._chance.choice([value.number for value in field.enum_type.values] + [99])
        if field.cpp_type in _INTEGERS:
            return self._chance.choice(_INTEGERS[field.cpp_type])
        if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
            return self._chance.random() < 0.5
        if field.type == FieldDescriptor.TYPE_BYTES:
            return self._chance.randbytes(self._chance.choice((0, 1, 100, 5000)))
        if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
            return self._text()
        return self._chance.choice((0.0, 1.5, -1e300))

    def _text(self) -> str:
        if self._told and self._chance.random() < 0.3:
            return self._chance.choice(self._told)
        return self._chance.choice(_TEXTS[:4] if self._chance.random() < 0.6 else _TEXTS)


class _Carrier:
    """A connection that keeps the data that a call sends."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def acknowledge(self, stream_id: int, received_bytes: int) -> None:
        pass

    def held_changed(self, by_bytes: int) -> None:
        pass

    async def send(self, call: Call, data: bytes) -> None:
        self.sent.append(data[_PREFIX_BYTES:])


async def fuzz_calls(watch: Watch, chance: random.Random, inputs: int) -> None:
    """Runs one round: a new broker receives `inputs` fuzzed requests, and also serves an honest client."""
    root = Path(tempfile.mkdtemp(prefix="fuzz-"))
    try:
        async with running_broker(root, grpc_server_port=0, enable_property_filter=True) as broker:
            proxy = broker._proxy
            assert proxy is not None
            await _attack(watch, chance, proxy._calls()._methods, inputs)
    finally:
        shutil.rmtree(root, ignore_errors=True)


async def _attack(watch: Watch, chance: random.Random, methods: dict[str, Method], inputs: int) -> None:
    maker, names = CallMaker(chance), sorted(methods)
    for number in range(inputs):
        name = chance.choice(names)
        data = maker.request(name)
        client = f"client-{chance.randrange(5)}", chance.choice(("JAVA", "PYTHON", "?"))
        with watch.frame("calls", name, data):
            answers = await _answers(methods[name], data, *client)
        for answer in answers:
            made = (service.TelemetryCommand if name == "Telemetry" else getattr(service, f"{name}Response")).FromString(answer)
            if made.HasField("status"):
                watch.answers[f"calls {api.Code.Name(made.status.code)}"] += 1
            for status in _statuses(made):
                if status.code in (api.CODE_UNSPECIFIED, api.INTERNAL_ERROR, api.INTERNAL_SERVER_ERROR):
                    code = api.Code.Name(status.code)
                    watch.found(f"{code} was answered to {name}: {status.message}", watch.current)
            maker.learn(made)
        if number % HONEST_EVERY == 0:
            with watch.frame("honest client", "SendMessage", b""):
                await _send_honestly(methods["SendMessage"])


def _statuses(made: Any) -> list[api.Status]:
    """Returns the response's status and the statuses of its entries."""
    return [it.status for it in (made, *getattr(made, "entries", ())) if it.HasField("status")]


async def _answers(method: Method, data: bytes, client_id: str, language: str) -> list[bytes]:
    """Returns the responses. The call's deadline is too short to wait for messages."""
    carrier, now_s = _Carrier(), asyncio.get_running_loop().time()
    metadata = {"x-mq-client-id": client_id, "x-mq-language": language, "grpc-timeout": "300m"}
    call = Call(carrier, 1, method, metadata, ("127.0.0.1", _PORT), now_s)
    with suppress(CallEnded):
        call.feed(b"\x00" + len(data).to_bytes(4, "big") + data, len(data))
        call.client_ended()
        await method.serve(call)
    return carrier.sent


async def _send_honestly(method: Method) -> None:
    message = api.Message(
        topic=api.Resource(name="honest"), body=b"hello", system_properties=api.SystemProperties(message_id="honest")
    )
    (data,) = await _answers(method, service.SendMessageRequest(messages=[message]).SerializeToString(), "honest", "JAVA")
    status = service.SendMessageResponse.FromString(data).status
    assert status.code == api.OK, status
