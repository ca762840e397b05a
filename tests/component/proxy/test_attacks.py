"""Tests that a malicious client of the gRPC port affects no other client, because each connection's resources are limited."""

import asyncio
import logging
import os
import struct
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import grpc
import hpack
import pytest

from rocketmq_broker.proxy import GrpcProxy
from rocketmq_broker.proxy.calls import MAX_REQUEST_BYTES
from rocketmq_broker.proxy.checks import MAX_HOST_LENGTH
from rocketmq_broker.proxy.clients.routes import MAX_ANSWER_BYTES
from rocketmq_broker.proxy.connections import http2, session
from rocketmq_broker.proxy.protos import definition_pb2 as api
from rocketmq_broker.proxy.protos import service_pb2 as service
from rocketmq_broker.testing import RocketMQ
from tests.component.proxy import raw_client as raw
from tests.component.proxy.api_client import ApiClient, connected
from tests.component.proxy.raw_client import frame, headers, message, raw_connection

SEND = service.SendMessageRequest(
    messages=[
        api.Message(
            topic=api.Resource(name="orders"), body=b"hello", system_properties=api.SystemProperties(message_id="message-1")
        )
    ]
).SerializeToString()
ROUTE = service.QueryRouteRequest(topic=api.Resource(name="orders")).SerializeToString()


async def is_served(rocketmq: RocketMQ) -> bool:
    async with connected(rocketmq.grpc_endpoint, x_mq_client_id="honest") as honest:
        return bool((await honest.send("orders", b"hello")).status.code == api.OK)


@pytest.fixture
async def frugal() -> AsyncIterator[RocketMQ]:
    """Yields a broker whose connections may use at most 4 MiB of memory in total."""
    async with RocketMQ({"grpcServerPort": 0}) as running:
        running._running._memory._budget_bytes = 4 * 1024 * 1024
        yield running


async def test_a_path_that_is_no_text_is_answered_and_the_port_goes_on(rocketmq: RocketMQ) -> None:
    async with raw_connection(rocketmq.grpc_endpoint) as stranger:
        await stranger.send(frame(raw.HEADERS, raw.END_HEADERS | raw.END_STREAM, 1, headers(_path=b"/\xe8x")))
        answered, _ = await stranger.answer(1)
        assert answered["grpc-status"] == str(grpc.StatusCode.UNIMPLEMENTED.value[0])
    assert await is_served(rocketmq)


async def test_a_connection_takes_one_descriptor_and_gives_it_back(rocketmq: RocketMQ) -> None:
    def open_descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = open_descriptors()
    async with raw_connection(rocketmq.grpc_endpoint) as stranger:
        await stranger.send(raw.call(1, "QueryRoute", ROUTE))
        await stranger.answer(1)
        assert open_descriptors() == before + 2  # both ends are in this process
    assert await is_served(rocketmq)
    await rocketmq.wait_until(lambda: open_descriptors() == before)


FLOODS = {
    "rapid resets": b"".join(
        frame(raw.HEADERS, raw.END_HEADERS, number, block) + frame(raw.RST_STREAM, 0, number, raw.CANCEL)
        for block in [headers()]
        for number in range(1, 4001, 2)
    ),
    "pings": frame(raw.PING, 0, 0, b"12345678") * 5000,
    "settings": frame(raw.SETTINGS, 0, 0) * 5000,
    "priorities": frame(raw.PRIORITY, 0, 1, b"\x00\x00\x00\x00\x10") * 5000,
    "unknown frames": frame(0x77, 0, 0, b"x") * 5000,
    "empty data": frame(raw.HEADERS, raw.END_HEADERS, 1, headers()) + frame(raw.DATA, 0, 1) * 5000,
    "bytes one by one": frame(raw.HEADERS, raw.END_HEADERS, 1, headers()) + frame(raw.DATA, 0, 1, b"\x00") * 5000,
    "window updates": frame(raw.WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)) * 5000,
    "continuations": frame(raw.HEADERS, 0, 1, headers()) + frame(raw.CONTINUATION, 0, 1, b"\x00\x01a\x01b" * 3000) * 100,
    "empty continuations": frame(raw.HEADERS, 0, 1, headers()) + frame(raw.CONTINUATION, 0, 1) * 5000,
}


@pytest.mark.parametrize("flood", FLOODS)
async def test_a_flood_of_frames_without_use_ends_its_connection_alone(
    rocketmq: RocketMQ, flood: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with raw_connection(rocketmq.grpc_endpoint) as stranger:
        await stranger.flood(FLOODS[flood], 1)
        await stranger.end()
        assert await is_served(rocketmq)
    (said,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert "closing the connection of 127.0.0.1" in said


async def test_resets_of_calls_that_have_begun_are_bounded_however_they_are_spread(
    rocketmq: RocketMQ, caplog: pytest.LogCaptureFixture
) -> None:
    began = 0
    async with raw_connection(rocketmq.grpc_endpoint) as stranger:
        queue = api.MessageQueue(topic=api.Resource(name="orders"))
        poll = service.ReceiveMessageRequest(group=api.Resource(name="group"), message_queue=queue, auto_renew=True)
        for number in range(1, 8001, 2):
            began += 1
            data = raw.call(number, "ReceiveMessage", poll.SerializeToString()) + frame(raw.RST_STREAM, 0, number, raw.CANCEL)
            if not await stranger.flood(data, 1) or stranger.reader.at_eof():
                break
        await stranger.end()
    assert began < 4000
    assert "too many frames without useful data" in caplog.text
    assert await is_served(rocketmq)


async def test_requests_that_are_never_whole_are_counted_with_all_other_memory(
    frugal: RocketMQ, caplog: pytest.LogCaptureFixture
) -> None:
    async with raw_connection(frugal.grpc_endpoint) as stranger:
        for number in range(1, 21, 2):
            await stranger.flood(frame(raw.HEADERS, raw.END_HEADERS, number, headers()), 1)
            part = message(b"x" * 900_000)[:-1]
            for start in range(0, len(part), 16_384):
                if not await stranger.flood(frame(raw.DATA, 0, number, part[start : start + 16_384]), 1):
                    break
        await stranger.end()
    assert "more than any other, and all connections hold" in caplog.text
    assert await is_served(frugal)


async def test_messages_that_wait_for_a_client_that_does_not_read_are_counted(
    frugal: RocketMQ, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(frugal.grpc_endpoint, x_mq_client_id="honest") as honest:
        for _ in range(200):
            await honest.send("letters", b"x" * 50_000)
    receive = service.ReceiveMessageRequest(
        group=api.Resource(name="group"), message_queue=api.MessageQueue(topic=api.Resource(name="letters")), batch_size=32
    )
    receive.invisible_duration.FromSeconds(60)
    async with raw_connection(frugal.grpc_endpoint) as stranger:
        for number in range(1, 81, 2):
            await stranger.flood(raw.call(number, "ReceiveMessage", receive.SerializeToString()), 1)
        await stranger.end()
    assert "more than any other, and all connections hold" in caplog.text
    assert await is_served(frugal)


async def test_a_request_is_no_longer_than_its_kind(client: ApiClient) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as ended:
        await client.bytes("Heartbeat", b"x" * (MAX_REQUEST_BYTES + 1))
    assert ended.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    telemetry = client.telemetry()
    with pytest.raises(grpc.aio.AioRpcError) as ended:
        await telemetry.settle(settings_of("h" * MAX_REQUEST_BYTES))
    assert ended.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


def settings_of(host: str, topics: int = 1) -> api.Settings:
    endpoints = api.Endpoints(scheme=api.DOMAIN_NAME, addresses=[api.Address(host=host, port=1)])
    publishing = api.Publishing(topics=[api.Resource(name=f"orders-{number}") for number in range(topics)])
    return api.Settings(client_type=api.PRODUCER, access_point=endpoints, publishing=publishing)


async def test_settings_with_an_endless_host_are_refused(client: ApiClient) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as ended:
        await client.telemetry().settle(settings_of("h" * (MAX_HOST_LENGTH + 1)))
    assert "host too long" in str(ended.value.details())


async def test_settings_that_are_kept_are_counted(frugal: RocketMQ, caplog: pytest.LogCaptureFixture) -> None:
    large = settings_of("localhost")
    large.user_agent.platform = "x" * 900_000
    async with connected(frugal.grpc_endpoint) as stranger:
        for number in range(10):
            stranger.metadata = (("x-mq-client-id", f"client-{number}"),)
            with suppress(grpc.aio.AioRpcError):
                await stranger.telemetry().settle(large)
    assert "more than any other, and all connections hold" in caplog.text
    assert await is_served(frugal)


async def test_answers_that_are_not_read_are_counted_and_no_further_settings_are_read(
    frugal: RocketMQ, caplog: pytest.LogCaptureFixture
) -> None:
    large = settings_of("localhost")
    large.user_agent.platform = "x" * 300_000
    data = message(service.TelemetryCommand(settings=large).SerializeToString())
    async with raw_connection(frugal.grpc_endpoint, struct.pack(">HI", raw.INITIAL_WINDOW_SIZE, 0)) as stranger:
        for number in range(1, 21, 2):
            begin = headers("Telemetry", x_mq_client_id=f"raw-{number}")
            await stranger.flood(frame(raw.HEADERS, raw.END_HEADERS, number, begin), 1)
            for start in range(0, len(data), 16_384):
                await stranger.flood(frame(raw.DATA, 0, number, data[start : start + 16_384]), 1)
        await stranger.end()
    assert "more than any other, and all connections hold" in caplog.text
    assert await is_served(frugal)


async def test_a_client_that_reads_no_answers_gets_no_more_work_done_until_it_does(rocketmq: RocketMQ) -> None:
    await (await rocketmq.producer("operator")).create_topic("wide", 9000)
    data = service.QueryRouteRequest(topic=api.Resource(name="wide")).SerializeToString()
    numbers = range(1, 201, 2)
    async with raw_connection(rocketmq.grpc_endpoint, struct.pack(">HI", raw.INITIAL_WINDOW_SIZE, 0)) as stranger:
        await stranger.send(b"".join(raw.call(number, "QueryRoute", data) for number in numbers))
        (connection,) = proxy_of(rocketmq)._server.connections
        await rocketmq.wait_until(lambda: len(connection.calls) == len(numbers))
        assert await is_served(rocketmq)
        begun = [call for call in connection.calls.values() if call.task is not None]
        assert len(begun) < len(numbers) / 2
        await stranger.send(frame(raw.SETTINGS, 0, 0, struct.pack(">HI", raw.INITIAL_WINDOW_SIZE, 2**31 - 1)))
        await stranger.send(frame(raw.WINDOW_UPDATE, 0, 0, struct.pack(">I", 2**30)))
        answered, _ = await stranger.answer(numbers[-1])
        assert answered["grpc-status"] == "0"


async def test_a_client_that_takes_no_answer_in_time_gets_a_status(
    rocketmq: RocketMQ, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http2, "TAKEN_WITHIN_S", 0.05)
    async with raw_connection(rocketmq.grpc_endpoint, struct.pack(">HI", raw.INITIAL_WINDOW_SIZE, 0)) as stranger:
        await stranger.send(raw.call(1, "QueryRoute", ROUTE))
        answered, data = await stranger.answer(1)
    assert (answered["grpc-message"], data) == ("the client has not read its answer for 0.05 s", b"")
    assert "it has not read its answers" in caplog.text


async def test_a_client_that_opens_its_window_byte_by_byte_gets_the_whole_answer(rocketmq: RocketMQ) -> None:
    async with raw_connection(rocketmq.grpc_endpoint, struct.pack(">HI", raw.INITIAL_WINDOW_SIZE, 0)) as stranger:
        await stranger.send(raw.call(1, "QueryRoute", ROUTE))
        for _ in range(20):
            await stranger.send(frame(raw.WINDOW_UPDATE, 0, 1, struct.pack(">I", 1)))
        await stranger.send(frame(raw.WINDOW_UPDATE, 0, 1, struct.pack(">I", 100_000)))
        answered, data = await stranger.answer(1)
    assert answered["grpc-status"] == "0"
    assert service.QueryRouteResponse.FromString(data[5:]).status.code == api.OK


async def test_a_silent_connection_and_an_unfinished_request_end(
    rocketmq: RocketMQ, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http2, "BEGINS_WITHIN_S", 0.05)
    host, port = str(rocketmq.grpc_endpoint).split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(raw.PREFACE[:-1])
    assert await reader.read() == b""
    writer.close()
    assert "it has not begun HTTP/2" in caplog.text
    monkeypatch.setattr(http2, "REQUEST_WITHIN_S", 0.0)
    async with raw_connection(rocketmq.grpc_endpoint) as stranger:
        await stranger.send(frame(raw.HEADERS, raw.END_HEADERS, 1, headers()) + frame(raw.DATA, 0, 1, b"\x00"))
        answered, _ = await stranger.answer(1)
    assert answered["grpc-status"] == str(grpc.StatusCode.DEADLINE_EXCEEDED.value[0])


NO_HTTP2 = {
    "a frame that is too long": struct.pack(">I", 1 << 20)[1:] + bytes([raw.DATA, 0]) + struct.pack(">I", 1) + b"x" * 20_000,
    "an even stream": frame(raw.HEADERS, raw.END_HEADERS, 2, headers()),
    "data on no stream": frame(raw.DATA, 0, 7, b"x"),
    "a damaged header block": frame(raw.HEADERS, raw.END_HEADERS, 1, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
    "an endless header": frame(raw.HEADERS, 0, 1, headers(x="y" * 16_000)[:16_384])
    + frame(raw.CONTINUATION, raw.END_HEADERS, 1, hpack.Encoder().encode([("z", "y" * 16_000)], huffman=False)),
    "upper case": frame(raw.HEADERS, raw.END_HEADERS, 1, headers(X="y")),
    "no path": frame(raw.HEADERS, raw.END_HEADERS, 1, headers()[1:]),
    "a frame amid a header block": frame(raw.HEADERS, 0, 1, headers()) + frame(raw.PING, 0, 0, b"12345678"),
    "a window beyond all bounds": frame(raw.WINDOW_UPDATE, 0, 0, struct.pack(">I", 2**31 - 1)) * 3,
    "impossible settings": frame(raw.SETTINGS, 0, 0, struct.pack(">HI", raw.INITIAL_WINDOW_SIZE, 2**32 - 1)),
    "padding longer than its frame": frame(raw.HEADERS, raw.END_HEADERS, 1, headers()) + frame(raw.DATA, 8, 1, b"\xff"),
    "a push promise": frame(5, raw.END_HEADERS, 1, b"\x00\x00\x00\x02" + headers()),
    "more streams than may be": b"".join(
        frame(raw.HEADERS, raw.END_HEADERS, number, headers()) for number in range(1, 2 * http2.MAX_CALLS + 4, 2)
    ),
}


@pytest.mark.parametrize("mistake", NO_HTTP2)
async def test_what_is_no_HTTP2_ends_its_connection_alone_and_is_no_fault_of_the_broker(
    rocketmq: RocketMQ, mistake: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with raw_connection(rocketmq.grpc_endpoint) as stranger:
        await stranger.flood(NO_HTTP2[mistake], 1)
        await stranger.end()
    assert await is_served(rocketmq)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert "closing the connection of 127.0.0.1" in caplog.text


async def status_of(rocketmq: RocketMQ, data: bytes) -> tuple[str, str]:
    async with raw_connection(rocketmq.grpc_endpoint) as stranger:
        await stranger.send(data)
        answered, _ = await stranger.answer(1)
    return answered.get("grpc-status", answered[":status"]), answered.get("grpc-message", "")


async def test_what_is_no_call_gets_a_status_in_words(rocketmq: RocketMQ) -> None:
    begin = frame(raw.HEADERS, raw.END_HEADERS, 1, headers())

    def data(content: bytes) -> bytes:
        return begin + frame(raw.DATA, raw.END_STREAM, 1, content)

    assert await status_of(rocketmq, data(b"\x01" + message(SEND)[1:])) == (
        "12",
        "compressed messages are not supported: use grpc-encoding identity",
    )
    assert await status_of(rocketmq, data(message(SEND)[:-1])) == ("13", "the call ends in the middle of a message")
    assert await status_of(rocketmq, data(message(SEND) * 2)) == ("13", "more than one message in a unary call")
    assert await status_of(rocketmq, data(b"")) == ("13", "the call has no request message")
    assert await status_of(rocketmq, data(b"\x00\xff\xff\xff\xff")) == (
        "8",
        "message too long: 4294967295 bytes, at most 8454144",
    )
    assert (await status_of(rocketmq, raw.call(1, "SendMessage", SEND, grpc_timeout="soon")))[0] == "13"
    assert (await status_of(rocketmq, raw.call(1, "Nonsense", SEND)))[0] == "12"
    assert (await status_of(rocketmq, raw.call(1, "SendMessage", SEND, _method="GET")))[0] == "415"
    assert (await status_of(rocketmq, raw.call(1, "SendMessage", SEND, content_type="text/html")))[0] == "415"
    assert await status_of(rocketmq, raw.call(1, "SendMessage", SEND)) == ("0", "")


async def test_a_client_that_says_it_leaves_still_gets_its_answers(rocketmq: RocketMQ) -> None:
    async with raw_connection(rocketmq.grpc_endpoint) as stranger:
        await stranger.send(raw.call(1, "SendMessage", SEND) + frame(raw.GOAWAY, 0, 0, bytes(8)))
        answered, _ = await stranger.answer(1)
        assert answered["grpc-status"] == "0"
        await stranger.end()


async def test_a_deadline_ends_a_call(rocketmq: RocketMQ) -> None:
    assert await status_of(rocketmq, raw.frame(raw.HEADERS, raw.END_HEADERS, 1, headers(grpc_timeout="20m"))) == (
        str(grpc.StatusCode.DEADLINE_EXCEEDED.value[0]),
        "the call's deadline has passed",
    )


async def test_an_answer_does_not_multiply_what_its_asker_names(rocketmq: RocketMQ, client: ApiClient) -> None:
    await (await rocketmq.producer("operator")).create_topic("wide", 4000)
    long_host = api.Endpoints(scheme=api.DOMAIN_NAME, addresses=[api.Address(host="h" * 5000, port=1)])
    many = api.Endpoints(scheme=api.DOMAIN_NAME, addresses=[api.Address(host="h" * MAX_HOST_LENGTH, port=1)] * 60)
    for name in ("QueryRoute", "QueryAssignment"):
        fields = {"topic": api.Resource(name="wide")} | (
            {"group": api.Resource(name="group")} if name == "QueryAssignment" else {}
        )
        refused = await client.call(name, endpoints=long_host, **fields)
        assert (refused.status.code, "host too long" in refused.status.message) == (api.ILLEGAL_ACCESS_POINT, True)
    refused = await client.call("QueryRoute", topic=api.Resource(name="wide"), endpoints=many)
    assert (refused.status.code, "too long" in refused.status.message) == (api.ILLEGAL_ACCESS_POINT, True)
    named = api.Resource(name="wide", resource_namespace="n" * 5000)
    assert (await client.call("QueryRoute", topic=named)).ByteSize() < MAX_ANSWER_BYTES
    route = await client.call("QueryRoute", topic=api.Resource(name="wide"), endpoints=client.endpoints)
    assert [queue.id for queue in route.message_queues] == list(range(4000))
    assert route.ByteSize() < MAX_ANSWER_BYTES


def proxy_of(rocketmq: RocketMQ) -> GrpcProxy:
    assert rocketmq._running._proxy is not None
    return rocketmq._running._proxy


def sessions_of(rocketmq: RocketMQ) -> session.ClientSessions:
    return proxy_of(rocketmq)._sessions


async def decide(client: ApiClient, client_id: str) -> api.Code:
    """Sends a call that requires a session, and returns the status code."""
    client.metadata = (("x-mq-client-id", client_id),)
    resource = api.Resource(name="orders")
    answer = await client.call("EndTransaction", topic=resource, transaction_id="id/1/1", message_id="id", resolution=api.COMMIT)
    return answer.status.code  # type: ignore[no-any-return]


async def test_made_up_clients_of_a_connection_are_bounded_and_end_with_it(rocketmq: RocketMQ, client: ApiClient) -> None:
    await client.producer("orders")
    async with connected(rocketmq.grpc_endpoint) as stranger:
        for number in range(session.MAX_SESSIONS_OF_CONNECTION + 20):
            assert await decide(stranger, f"made-up-{number}") == api.INVALID_TRANSACTION_ID
        assert len(sessions_of(rocketmq)) <= session.MAX_SESSIONS_OF_CONNECTION + 1
    await rocketmq.wait_until(lambda: len(sessions_of(rocketmq)) == 1)
    assert (await client.call("Heartbeat", client_type=api.PRODUCER)).status.code == api.OK


async def test_sessions_that_nothing_needs_make_room_for_others(
    rocketmq: RocketMQ, client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "MAX_SESSIONS", 5)
    await client.producer("orders")
    async with connected(rocketmq.grpc_endpoint) as stranger:
        for number in range(50):
            assert await decide(stranger, f"made-up-{number}") == api.INVALID_TRANSACTION_ID
        assert await is_served(rocketmq)
        assert (await client.call("Heartbeat", client_type=api.PRODUCER)).status.code == api.OK


async def test_with_accounts_an_unsigned_call_is_refused_before_anything_is_kept(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "plain_acl.yml").write_text("accounts:\n- accessKey: the-shop\n  secretKey: the secret of the shop\n")
    settings = {"grpcServerPort": 0, "aclEnable": True, "rocketmqHome": tmp_path}
    async with RocketMQ(settings, store=tmp_path / "store") as rocketmq, connected(rocketmq.grpc_endpoint) as client:
        for name in set(proxy_of(rocketmq)._calls()._methods) - {"Telemetry"}:
            answers = await client.stream(name) if name in ("ReceiveMessage", "PullMessage") else [await client.call(name)]
            assert [answer.status.code for answer in answers] == [api.UNAUTHORIZED], name
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await client.telemetry().next()
        assert ended.value.code() == grpc.StatusCode.PERMISSION_DENIED
        assert len(sessions_of(rocketmq)) == 0
