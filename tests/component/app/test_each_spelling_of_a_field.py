"""Tests that the ACL checks the values that the handler uses, for each request code, header field and unusual spelling."""

import asyncio
import contextlib
import itertools
import json
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rocketmq_broker.acl import AccessDenied, AccessRules, Account, SessionCredentials
from rocketmq_broker.acl.needs import FINDERS, StoredUnder
from rocketmq_broker.message.ids import offset_message_id
from rocketmq_broker.protocol.codes import SerializeType
from rocketmq_broker.protocol.command import RemotingCommand, decode_command
from rocketmq_broker.protocol.command_codec import binary_frame, json_header
from rocketmq_broker.protocol.command_header import CommandHeader, Header
from rocketmq_broker.protocol.errors import ProtocolError
from rocketmq_broker.protocol.ext_fields import encode_binary
from tests.component.app.test_access import guarded_broker

SECRET = "a long secret"
OWN, FOREIGN = "own", "foreign"
STRANGER = Account(access_key="stranger-key", secret_key=SECRET, topic_perms=(f"{OWN}=PUB|SUB",), group_perms=(f"{OWN}=SUB",))
RULES = AccessRules([STRANGER])
MAX_IN_BINARY = (1 << 15) - 1
"""The largest request code of a header in binary: RocketMQ writes two bytes for it, so pops are asked for in JSON."""
STORED = {145: StoredUnder("RMQ_SYS_TRANS_HALF_TOPIC", FOREIGN), 100: StoredUnder(FOREIGN, FOREIGN), 7: StoredUnder(OWN, OWN)}

NUMBERS = [
    "145", "145.0", "1.45e2", "145e0", "1e2", "100.0", "+145", " 145", "145 ", "0145", "-145", "१४५",
    "\uff11\uff14\uff15", "1_45", "0x91", "", "nan", "inf", "null", "true", "1e400", "9" * 30, "145\x00", "7",
]  # fmt: skip
NAMES = [
    FOREIGN,
    OWN,
    f" {FOREIGN}",
    f"{FOREIGN} ",
    FOREIGN.upper(),
    f"{FOREIGN}\x00",
    "",
    "null",
    "1e2",
    "%RETRY%foreign",
    "%RETRY%own",
]
MESSAGE_IDS = [
    offset_message_id(bytes(8), 145),
    offset_message_id(bytes(8), 145).lower(),
    offset_message_id(bytes(8), 7),
    "145.0",
]
BARE = ["145", "145.0", "1.45e2", "1e2", "true", "null", '"\\u0031\\u0034\\u0035"', '"\\u0031e2"', '"145\\u002e0"', "[145]"]
"""Values in JSON that are no plain strings."""


class Watched(RemotingCommand, kw_only=True):
    """A request that records the type of the header that its handler decodes."""

    asked_for: object = None

    def decode_header(self, header_type: type[Header]) -> Header:
        self.asked_for = header_type
        return super().decode_header(header_type)


@pytest.fixture(scope="module")
def header_types(tmp_path_factory: pytest.TempPathFactory) -> dict[int, type[CommandHeader]]:
    """Returns the header type that each request code's handler decodes, as observed on a whole broker."""
    return asyncio.run(_header_types(tmp_path_factory.mktemp("spellings")))


async def _header_types(home: Path) -> dict[int, type[CommandHeader]]:
    broker = guarded_broker(home)
    await broker.start()
    found: dict[int, type[CommandHeader]] = {}
    try:
        for code, handler in broker._dispatcher._handlers.items():
            command = Watched(code=code, opaque=1, json_fields=msgspec.Raw(b'{"":[]}'))
            with contextlib.suppress(Exception):  # without its fields no handler comes far; what it asked for is kept
                answer = handler(None, command)  # type: ignore[arg-type]
                if isinstance(answer, Generator):
                    next(answer)
            if command.asked_for is not None:
                found[code] = command.asked_for  # type: ignore[assignment]
    finally:
        await broker.stop()
    return found


def whole(header_type: type[CommandHeader]) -> dict[str, str]:
    """Returns all fields of a header type, with values that the account `stranger` may use."""
    fields = {}
    for field in msgspec.structs.fields(header_type):
        kind = str(field.type)
        fields[field.encode_name] = "false" if "bool" in kind else "7" if "int" in kind else OWN
    return fields | ({"commitOrRollback": "8"} if "commitOrRollback" in fields else {})


def binary_entries(entries: list[tuple[str, str]]) -> bytes:
    return b"".join(encode_binary({name: value}) for name, value in entries)


def json_entries(entries: list[tuple[str, str]]) -> bytes:
    """Returns the entries as a JSON object. The values must already be JSON. Names may be repeated."""
    return b"{%b}" % b",".join(f"{json.dumps(name)}:{value}".encode() for name, value in entries)


def spellings(fields: dict[str, str]) -> Iterator[tuple[SerializeType, list[tuple[str, str]]]]:
    """Yields the fields in unusual spellings: with other values, missing, repeated, or with a different case."""
    for name in fields:
        others = [(one, value) for one, value in fields.items() if one != name]
        for value in NUMBERS if fields[name].isdecimal() else (*NAMES, *MESSAGE_IDS):
            for entries in (
                [*others, (name, value)],
                [(name, value), *others, (name, fields[name])],
                [(name, fields[name]), *others, (name, value)],
                [*others, (name, fields[name]), (name.upper(), value)],
            ):
                yield SerializeType.ROCKETMQ, entries
                yield SerializeType.JSON, [(one, json.dumps(text)) for one, text in entries]
        yield SerializeType.ROCKETMQ, others
        for value in BARE:
            yield SerializeType.JSON, [*((one, json.dumps(text)) for one, text in others), (name, value)]


def command_of(code: int, serializer: SerializeType, fields: bytes) -> RemotingCommand:
    """Decodes a command from a frame with these fields."""
    if serializer is SerializeType.JSON:
        header = json_header(code, fields, 0, b'"JAVA"', 1, None, 407)
        return decode_command(0, header, 0, len(header), len(header))
    frame = binary_frame(code, fields, 0, 0, 1, None, 407, b"")
    return decode_command(1, frame, 8, len(frame), len(frame))


def signed(code: int, serializer: SerializeType, entries: list[tuple[str, str]]) -> RemotingCommand | None:
    """Returns the request with the stranger's signature, or None if its fields cannot be decoded."""
    encode = json_entries if serializer is SerializeType.JSON else binary_entries
    try:
        read = command_of(code, serializer, encode(entries)).ext_fields()
    except ProtocolError:
        return None
    complete = SessionCredentials("stranger-key", SECRET).signed(read, b"")
    added = [(name, complete[name]) for name in ("AccessKey", "Signature")]
    texts = [(name, json.dumps(text)) for name, text in added] if serializer is SerializeType.JSON else added
    return command_of(code, serializer, encode([*entries, *texts]))


def decided(command: RemotingCommand) -> str | None:
    """Returns the reason why the ACL refuses the request, or None if it accepts it."""
    try:
        RULES.check(command, "192.0.2.7", STORED.get)
    except (AccessDenied, ProtocolError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def test_the_acl_decides_over_what_the_handler_reads(header_types: dict[int, type[CommandHeader]]) -> None:
    wrong: list[Any] = []
    asked = 0
    for code, header_type in header_types.items():
        if code not in FINDERS:
            continue
        # Each seventh spelling, and other ones for each code: together they have each odd spelling of each kind of field.
        for serializer, entries in itertools.islice(spellings(whole(header_type)), code % 7, None, 7):
            if serializer is SerializeType.ROCKETMQ and code > MAX_IN_BINARY:
                continue
            command = signed(code, serializer, entries)
            if command is None:
                continue
            asked += 1
            refusal = decided(command)
            try:
                read = command_of(
                    code, serializer, bytes(command.json_fields) if serializer is SerializeType.JSON else command.binary_fields
                )
                header = read.decode_header(header_type)
            except ProtocolError as error:
                if refusal is None:
                    wrong.append((code, entries, "let in", str(error)))
                continue
            if "" not in header.ext_fields().values() and code <= MAX_IN_BINARY:
                plain = signed(code, SerializeType.ROCKETMQ, list(header.ext_fields().items()))
            else:
                plain = signed(code, SerializeType.JSON, [(name, json.dumps(text)) for name, text in header.ext_fields().items()])
            assert plain is not None
            if refusal != decided(plain):
                wrong.append((code, entries, refusal, decided(plain)))
            if refusal is None and command.decode_header(header_type) is not command.decoded:
                wrong.append((code, entries, "decoded again"))
    assert wrong == []
    assert asked > 750


def test_the_handler_acts_on_the_object_that_the_acl_decided_over(header_types: dict[int, type[CommandHeader]]) -> None:
    bodies_alone = {34, 41, 42, 400, 200151}
    assert set(FINDERS) - set(header_types) == bodies_alone
    for code in set(FINDERS) - bodies_alone:
        fields = list(whole(header_types[code]).items())
        if code > MAX_IN_BINARY:
            command = signed(code, SerializeType.JSON, [(name, json.dumps(text)) for name, text in fields])
        else:
            command = signed(code, SerializeType.ROCKETMQ, fields)
        assert command is not None
        decided(command)
        assert type(command.decoded) is header_types[code]
        assert command.decode_header(header_types[code]) is command.decoded


def test_nothing_in_a_json_header_stands_in_for_what_the_frame_says() -> None:
    smuggled = {
        "code": 33, "opaque": 1, "extFields": {"offset": "7"},
        "(decoded)": {"offset": 145}, "(type)": 1, "(binary)": "AAAA", "(body)": "AAAA",
    }  # fmt: skip
    header = json.dumps(smuggled).encode()
    frame = header + b"the frame's"
    command = decode_command(0, frame, 0, len(header), len(frame))
    assert (command.serialize_type, command.binary_fields, command.decoded) == (SerializeType.JSON, b"", None)
    assert command.body == b"the frame's"
    assert command.ext_fields() == {"offset": "7"}
