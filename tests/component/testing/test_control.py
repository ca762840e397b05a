"""Tests of the commands for tests in other languages."""

import asyncio
import json

import pytest

from rocketmq_broker.testing import RocketMQ
from rocketmq_broker.testing.control import BAD_REQUEST, FAILED, NOT_FOUND, OK, WRONG_METHOD, Control
from rocketmq_broker.testing.http import ControlServer
from tests.unit.testing.listeners import UNKNOWN, Transactions, order, send_in_transaction


async def test_a_lost_commit_settled_by_commands(rocketmq: RocketMQ) -> None:
    control = Control(rocketmq)
    producer = await rocketmq.transaction_producer("p", Transactions())
    assert await control.answer("POST", "lose-next-decision", {}) == (OK, {})
    await producer.send_message_in_transaction(order())
    _, (pending,) = await control.answer("GET", "pending", {})
    assert (pending["keys"], pending["state"], pending["nextCheckInSeconds"]) == (
        ["order-1"],
        "pending",
        pytest.approx(6, abs=0.1),
    )
    assert (await control.answer("POST", "advance", {"minutes": 1}))[0] == OK
    status, message = await control.answer("GET", "committed", {"key": "order-1"})
    assert (status, message["body"], message["topic"]) == (OK, "1", "orders")
    assert (await control.answer("GET", "messages", {"topic": "orders"}))[1] == [message]
    assert [one["state"] for one in (await control.answer("GET", "decided", {}))[1]] == ["committed"]
    assert "check-back" in (await control.answer("GET", "timeline", {"key": "order-1"}))[1]["timeline"]


async def test_every_fault_is_a_command(rocketmq: RocketMQ) -> None:
    control = Control(rocketmq)
    for name in (
        "lose-next-answer",
        "hold-check-backs",
        "release-check-backs",
        "cut-connections",
        "accept-sends",
        "fill-disk",
        "free-disk",
    ):
        assert await control.answer("POST", name, {}) == (OK, {}), name
    assert await control.answer("POST", "refuse-sends", {"code": "SYSTEM_BUSY", "times": 1}) == (OK, {})
    assert await control.answer("POST", "as-apache", {}) == (OK, {})
    assert await control.answer("POST", "as-apache", {"release": 5}) == (OK, {})
    assert await control.answer("POST", "crash", {"power": True}) == (OK, {})
    assert await control.answer("POST", "restart", {}) == (OK, {})
    assert (await control.answer("GET", "addresses", {}))[1]["namesrvAddr"] == rocketmq.namesrv_addr


@pytest.mark.parametrize(
    ("method", "name", "arguments", "status", "words"),
    [
        ("GET", "nothing", {}, NOT_FOUND, "unknown command nothing: must be one of"),
        ("GET", "advance", {}, WRONG_METHOD, "use POST for advance"),
        ("POST", "advance", {}, BAD_REQUEST, "expected at least one of seconds, minutes, hours, days"),
        ("POST", "advance", {"seconds": "soon"}, BAD_REQUEST, "seconds must be a number, not 'soon'"),
        ("POST", "advance", {"seconds": -1}, BAD_REQUEST, "must be a number from 0 to 1e9, not "),
        ("POST", "advance", {"seconds": "nan"}, BAD_REQUEST, "must be a number from 0 to 1e9, not "),
        ("POST", "advance", {"days": 401}, BAD_REQUEST, "time too long: 401 days, at most 400 in one command"),
        ("POST", "advance", {"days": 399, "hours": 25}, BAD_REQUEST, "time too long: 400.042 days, at most 400"),
        ("POST", "crash", {"power": ["true"]}, BAD_REQUEST, "power must be true or false"),
        ("POST", "advance", {"days": 999_999_999.9}, BAD_REQUEST, "time too long: 1e+09 days, at most 400"),
        ("POST", "crash", {"power": {}}, BAD_REQUEST, "power must be true or false"),
        ("POST", "crash", {"power": "yes"}, BAD_REQUEST, "power must be true or false, not 'yes'"),
        ("POST", "refuse-sends", {"code": "NO"}, BAD_REQUEST, "unknown response code 'NO'"),
        ("POST", "as-apache", {"release": 6}, BAD_REQUEST, "unknown release 6: must be 4 (4.9.7) or 5 (5.3.3)"),
        ("GET", "messages", {}, BAD_REQUEST, "topic is missing"),
        ("GET", "pending", {"key": 1}, BAD_REQUEST, "key must be a string, not 1"),
        ("GET", "committed", {"key": "x"}, FAILED, "'x' is unknown to the broker, not committed"),
        ("GET", "rolled-back", {"key": "x"}, FAILED, "'x' is unknown to the broker, not rolled back"),
    ],
)
async def test_what_is_wrong_is_said(
    rocketmq: RocketMQ, method: str, name: str, arguments: dict[str, object], status: int, words: str
) -> None:
    found, answer = await Control(rocketmq).answer(method, name, arguments)
    assert (found, words in answer["error"]) == (status, True), answer


async def ask(address: str, request: bytes) -> tuple[int, dict[str, object]]:
    host, _, port = address.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request.replace(b"PORT", port.encode()))
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), json.loads(body)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /story HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n", 200),
        (b'POST /advance HTTP/1.1\r\nHost: localhost:PORT\r\nContent-Length: 14\r\n\r\n{"seconds": 5}', 200),
        (b"POST /advance?seconds=5 HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n", 200),
        (b"GET /story HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nOrigin: http://a.page\r\n\r\n", 403),
        (b"GET /story HTTP/1.1\r\nHost: a.page:PORT\r\n\r\n", 421),
        (b"GET /story HTTP/1.1\r\n\r\n", 421),
        (b"nonsense\r\n\r\n", 400),
        (b"POST /advance HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nContent-Length: 1000000\r\n\r\n", 400),
        (b"POST /advance HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nContent-Length: 2\r\n\r\n[]", 400),
        (b"POST /advance HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nContent-Length: 60000\r\n\r\n" + b"[" * 60_000, 400),
        (b"POST /advance HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nContent-Length: 9\r\n\r\n\xff" + b"[" * 8, 400),
    ],
)
async def test_commands_come_by_http_from_this_machine_alone(rocketmq: RocketMQ, request_: bytes, status: int) -> None:
    server = ControlServer(Control(rocketmq))
    address = await server.start()
    found, answer = await ask(address, request_)
    await server.stop()
    assert found == status, answer


async def test_a_transaction_that_nobody_decides_is_not_committed(rocketmq: RocketMQ) -> None:
    await send_in_transaction(rocketmq, Transactions(UNKNOWN, UNKNOWN))
    status, answer = await Control(rocketmq).answer("GET", "committed", {"key": "order-1"})
    assert status == FAILED
    assert "p sends a half message to orders" in answer["error"]


async def test_a_program_elsewhere_can_ask_for_all_but_what_it_has_itself(rocketmq: RocketMQ) -> None:
    control = Control(rocketmq)
    methods = [name for name, found in vars(RocketMQ).items() if not name.startswith("_") and callable(found)]
    missing = [name for name in methods if (await control.answer("?", name.replace("_", "-"), {}))[0] == NOT_FOUND]
    in_the_program = ["start", "stop", "inside", "producer", "transaction_producer", "consumer", "settle", "wait_until"]
    assert missing == [*in_the_program, "commit_log", "stored_file", "inspection"]
