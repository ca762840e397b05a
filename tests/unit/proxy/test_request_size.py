"""The event loop's work for one SendMessage request is bounded, before and after the request is decoded."""

import asyncio
from types import SimpleNamespace

import pytest
from google.protobuf.message import DecodeError

from rocketmq_broker.protocol.headers.send import SendMessageResponseHeader
from rocketmq_broker.proxy.answers import CallRefused
from rocketmq_broker.proxy.messages.request_size import MAX_FIELDS, MAX_MESSAGES, refuse_oversized_request
from rocketmq_broker.proxy.messages.sent import SentMessages
from rocketmq_broker.proxy.producing.sending import Sending
from rocketmq_broker.proxy.protos import definition_pb2 as api
from rocketmq_broker.proxy.protos import service_pb2 as service

BIG_BODY = b"x" * 100_000
"""A request with it is long enough to be looked at."""


def encoded(*messages: api.Message) -> bytes:
    return service.SendMessageRequest(messages=messages).SerializeToString()


def message(body: bytes = BIG_BODY, user: dict[str, str] | None = None, **system: object) -> api.Message:
    properties = api.SystemProperties(**{"message_id": "id", **system})
    return api.Message(topic=api.Resource(name="orders"), body=body, user_properties=user, system_properties=properties)


def refusal_of(data: bytes) -> tuple[api.Code, str]:
    with pytest.raises(CallRefused) as refused:
        refuse_oversized_request(data)
    return refused.value.status.code, refused.value.status.message


def test_a_request_with_too_much_beside_its_bodies_is_refused_before_it_is_decoded() -> None:
    keys = refusal_of(encoded(message(keys=["k"] * 400_000)))
    assert keys[0] == api.MESSAGE_PROPERTIES_TOO_LARGE
    assert "bytes beside the bodies, at most 1048576" in keys[1]
    empty = refusal_of(b"\n\x00" * 200_000)
    assert empty == (api.MESSAGE_CORRUPTED, f"too many messages in a request: at most {MAX_MESSAGES}")
    user = {str(number): "v" for number in range(128)}
    fields = refusal_of(encoded(*[message(b"x", user)] * 100))
    assert fields == (api.MESSAGE_PROPERTIES_TOO_LARGE, f"too many fields and user properties in a request: at most {MAX_FIELDS}")
    assert refusal_of(b"\x10\x01" * 100_000)[0] == api.MESSAGE_PROPERTIES_TOO_LARGE


def test_what_clients_send_passes() -> None:
    user = {f"property-{number}": "v" * 20 for number in range(128)}
    refuse_oversized_request(encoded(message(b"x" * 4 * 1024 * 1024, user, keys=["k" * 20] * 128, tag="t")))
    refuse_oversized_request(encoded(*[message(b"x" * 1000, {"a": "b"}, keys=["k"])] * MAX_MESSAGES))
    refuse_oversized_request(b"\n\x00" * 1025)


DAMAGED = {
    "no length": b"\n",
    "no end of a length": b"\n\xff",
    "no end of a number": b"\x80" * 11,
    "a group": b"\x0b",
    "too short": b"\n\x05abc",
    "a body longer than its message": b"\n\x02\x22\x05abcde",
    "a number that ends behind its message": b"\n\x01\x10\x01",
    "too few bytes": b"\x09abc",
}


@pytest.mark.parametrize("end", DAMAGED.values(), ids=DAMAGED)
def test_damaged_bytes_are_not_decoded(end: bytes) -> None:
    with pytest.raises(DecodeError):
        refuse_oversized_request(encoded(message()) + end)


def test_a_message_has_at_most_128_keys() -> None:
    sent = SentMessages((1_000,), max_body_bytes=1_000_000)
    sent.properties_of(message(keys=["k"] * 128), 0)
    with pytest.raises(CallRefused, match="too many keys: 129, at most 128") as refused:
        sent.properties_of(message(keys=["k"] * 129), 0)
    assert refused.value.status.code == api.ILLEGAL_MESSAGE_KEY


class Session:
    """A session that counts the sent messages."""

    sent = 0

    async def invoke(self, *request: object) -> SimpleNamespace:
        self.sent += 1
        header = SendMessageResponseHeader(msg_id="7F00000100002A9F0000000000000000", queue_id=0, queue_offset=self.sent)
        return SimpleNamespace(decode_header=lambda header_type: header)


async def test_the_messages_of_a_request_leave_turns_for_others() -> None:
    routes = SimpleNamespace(refuse_unwritable=lambda topic: None, accepted_types=lambda topic: (api.NORMAL,))
    sending = Sending(routes, SentMessages((1_000,), max_body_bytes=1_000_000), lambda: 0)  # type: ignore[arg-type]
    session = Session()
    request = service.SendMessageRequest(messages=[message(b"x")] * 200)
    sends = asyncio.create_task(sending.send(session, request))  # type: ignore[arg-type]
    in_a_turn, before = [], 0
    while not sends.done():
        await asyncio.sleep(0)
        in_a_turn.append(session.sent - before)
        before = session.sent
    assert max(in_a_turn) <= 16
    answer = await sends
    assert [entry.offset for entry in answer.entries] == list(range(1, 201))
    assert answer.status.code == api.OK
