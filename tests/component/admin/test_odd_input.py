"""Tests that the command line responds to unexpected words, numbers and responses with an error text, not a traceback."""

# ruff: noqa: E501

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from rocketmq_broker.admin import session
from rocketmq_broker.admin.__main__ import app
from rocketmq_broker.admin.output.durations import MAX_MS, parse_duration_ms
from rocketmq_broker.admin.output.printing import print_json
from rocketmq_broker.admin.output.times import time_text
from rocketmq_broker.protocol.bodies.transaction_admin import TransactionInfo
from rocketmq_broker.protocol.codes import ResponseCode, SerializeType
from rocketmq_broker.protocol.command import RemotingCommand, encode_request
from rocketmq_broker.protocol.command_header import CommandHeader
from tests.stored_records import encoded

HOSTILE = "x\n\x1b[2J\x9b\u202e\u2028y"
OWN_TOPICS = {"%DLQ%credits": {"topicName": "%DLQ%credits", "readQueueNums": 1, "writeQueueNums": 1, "perm": 6}}

words = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=30) | st.sampled_from(
    [
        "",
        "-",
        "--",
        "0",
        "-1",
        "9" * 19,
        "9" * 5000,
        "1e9",
        "٣",
        "[::1]:1",
        "a:b:c",
        ":1",
        "127.0.0.1:99999",
        "http://x:1",
        ".:1",
        "%s%n",
        HOSTILE,
    ]
)
command_lines = st.tuples(
    st.sampled_from(
        [
            ["pending"], ["show"], ["decide"], ["decided"], ["discarded"], ["resume"],
            ["dead-letters", "list"], ["dead-letters", "show"], ["dead-letters", "retry"], ["dead-letters", "dismiss"],
            ["topics"], ["groups"], ["message"], ["tail"], ["send"], ["doctor"],
        ]
    ),
    st.lists(
        st.one_of(
            words.map(lambda word: [word]),
            st.tuples(
                st.sampled_from(
                    ["--topic", "--group", "--older-than", "--limit", "--after", "--before", "--reason", "--namesrv-addr", "--broker-addr"]
                ),
                words,
            ).map(list),
            st.sampled_from([["--commit"], ["--rollback"], ["--json"], ["--all"], ["--again"], ["--treated"], ["--oldest-first"]]),
        ),
        max_size=6,
    ),
).map(lambda parts: parts[0] + [word for option in parts[1] for word in option])  # fmt: skip


class Stranger:
    """A fake remoting client that returns the given responses. It opens no connection."""

    def __init__(self, answers: Iterator[tuple[int, bytes, dict[str, str], str | None]]) -> None:
        self._answers = answers

    async def invoke(
        self, address: str, code: int, header: CommandHeader | None, body: bytes = b"", *, timeout_ms: int
    ) -> RemotingCommand:
        encode_request(code, header, body, opaque=1, serialize_type=SerializeType.JSON)
        answered, content, fields, remark = next(self._answers)
        return RemotingCommand(
            code=answered, opaque=1, flag=1, remark=remark, body=content, json_fields=msgspec.Raw(json.dumps(fields).encode())
        )

    async def close(self) -> None:
        """Does nothing, because nothing is open."""


def run(monkeypatch: pytest.MonkeyPatch, arguments: list[str], answers: list[Any]) -> Result:
    def endless() -> Iterator[Any]:
        yield from answers
        while True:
            yield answers[-1]

    iterator = endless()
    monkeypatch.setattr(session, "open_remoting", lambda *_: Stranger(iterator))
    monkeypatch.setenv("NAMESRV_ADDR", "127.0.0.1:9876")
    result = CliRunner().invoke(app, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), (arguments, result.exc_info)
    assert all(line.isprintable() for line in result.stdout.split("\n")), result.stdout
    return result


refused = (ResponseCode.SYSTEM_ERROR, b"", {}, HOSTILE)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(command_lines)
def test_odd_words_and_numbers_end_in_a_sentence(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    assert run(monkeypatch, arguments, [refused]).exit_code in (0, 1, 2)


def record(**properties: str) -> bytes:
    return encoded(
        "%DLQ%credits", b"\x1b[2J", properties, sys_flag=1, born_timestamp=2**63 - 1, store_timestamp=-(2**63),
        reconsume_times=2**31 - 1,
    )  # fmt: skip


info = {
    "state": HOSTILE, "halfOffset": 2**63 - 1, "transactionId": HOSTILE, "producerGroup": HOSTILE, "topic": HOSTILE,
    "keys": [HOSTILE], "begunMs": 2**63 - 1, "ageMs": -(2**63), "nextCheckInMs": 2**62, "decidedMs": 2**63 - 1, "reason": HOSTILE,
}  # fmt: skip
bodies = st.one_of(
    st.binary(max_size=60),
    st.sampled_from(
        [
            b"", b"{", b"[]", b"null", b'{"transactions":[]}', b'{"marks":[]}', b'{"total":1e400}', b'{"total":99999999999999999999}',
            json.dumps({"transactions": [info], "total": 2**63 - 1, "nextAfter": 1}).encode(),
            json.dumps({"marks": [{"queueOffset": 0, "treatment": HOSTILE, "atMs": 2**63 - 1, "by": HOSTILE, "reason": HOSTILE}]}).encode(),
            json.dumps({"topicConfigTable": OWN_TOPICS}).encode(),
            json.dumps({"topicConfigTable": {"%DLQ%credits": {"topicName": HOSTILE, "readQueueNums": 2**31 - 1}}}).encode(),
            json.dumps({"brokerAddrTable": {HOSTILE: {"brokerAddrs": {"0": HOSTILE}}}}).encode(),
            record(), record(KEYS=HOSTILE, UNIQ_KEY=HOSTILE, RETRY_TOPIC=HOSTILE, TRANSACTION_CHECK_TIMES="9" * 5000),
            json.dumps({"subscriptionGroupTable": {HOSTILE: {"groupName": HOSTILE}}}).encode(),
            b'{"offsetTable":{{"brokerName":"a","queueId":0,"topic":"t"}:{"minOffset":-1,"maxOffset":9,"lastUpdateTimestamp":9223372036854775807}}}',
            b'{"offsetTable":{{"brokerName":"a","queueId":0,"topic":"t"}:{"brokerOffset":9,"consumerOffset":-1,"lastTimestamp":1}}}',
            json.dumps({"table": {"brokerVersionDesc": HOSTILE, "bootTimestamp": "9" * 19, "commitLogDiskRatio": HOSTILE}}).encode(),
            record()[:-1], record(PGROUP=HOSTILE, DEAD_LETTER_RETRIES="x" * 30),
        ]
    ),
)  # fmt: skip
fields = st.sampled_from([{}, {"offset": "1"}, {"offset": HOSTILE}, {"offset": "9" * 5000}, {"offset": "-5"}, {"nextBeginOffset": "1", "minOffset": "0", "maxOffset": "1"}])  # fmt: skip
answers = st.tuples(
    st.sampled_from([0, 0, 0, 1, 3, 17, 19, 22, -1, 2**31 - 1]), bodies, fields, st.sampled_from([None, HOSTILE, "\n"])
)
understandable = st.sampled_from(
    [
        ["pending"], ["show", "A"], ["decide", "A", "--commit", "--reason", "r"], ["decided"], ["discarded"], ["resume", "A"],
        ["dead-letters", "list"], ["dead-letters", "list", "credits"], ["dead-letters", "show", "A"],
        ["dead-letters", "retry", "-g", "credits", "--all"], ["dead-letters", "dismiss", "A", "--reason", "r"],
        ["topics"], ["topics", "--all"], ["groups"], ["groups", "-g", "credits"], ["message", "A"], ["message", "A", "-t", "orders"],
        ["send", "orders", "x"], ["doctor"],
    ]
)  # fmt: skip


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(understandable, st.booleans(), st.booleans(), st.lists(answers, min_size=1, max_size=8))
def test_odd_answers_of_brokers_and_name_servers_end_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, command: list[str], as_json: bool, is_by_address: bool, several: list[Any]
) -> None:
    json_option = ["--json"] if as_json and command[0] != "decide" and command[-2:] != ["--reason", "r"] else []
    target = ["-b", "127.0.0.1:1"] if is_by_address else []

    run(monkeypatch, [*target, *command, *json_option], [*several, refused])


def test_a_torn_record_of_a_broker_ends_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = (0, b"\0", {"offset": "1", "nextBeginOffset": "1", "minOffset": "0", "maxOffset": "1"}, None)

    result = run(
        monkeypatch,
        ["-b", "127.0.0.1:1", "dead-letters", "list"],
        [(0, json.dumps({"topicConfigTable": OWN_TOPICS}).encode(), {}, None), refused],
    )
    assert result.exit_code == 1
    result = run(
        monkeypatch, ["-b", "127.0.0.1:1", "resume", "7F00000100002A9F00000000000007B9"], [(*answered[:2], {"offset": "0"}, None)]
    )
    assert (result.exit_code, "sent an invalid response" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["pending", "-b", "127.0.0.1:1", "-n", "127.0.0.1:2"], "not both"),
        (["-b", "127.0.0.1:1", "-n", "127.0.0.1:2", "pending"], "not both"),
        (["dead-letters", "list", "-b", "127.0.0.1:1", "-n", "127.0.0.1:2"], "not both"),
        (["dead-letters", "dismiss", "A", "-g", "credits", "--all", "--reason", "r"], "cannot be combined with messages"),
    ],
)
def test_options_that_exclude_each_other_are_refused(monkeypatch: pytest.MonkeyPatch, arguments: list[str], why: str) -> None:
    result = run(monkeypatch, arguments, [refused])

    assert (result.exit_code, why in " ".join(result.stderr.replace("│", " ").split())) == (2, True)


def test_escape_sequences_of_a_broker_do_not_reach_the_terminal_by_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    decided = (0, json.dumps({"transactions": [info]}).encode(), {}, None)

    result = run(monkeypatch, ["-b", "127.0.0.1:1", "decide", "5", "--commit", "--reason", "r"], [decided])

    assert result.exit_code == 0
    assert result.stdout.count("\n") == 1
    assert "\\x1b[2J" in result.stdout


def test_json_for_programs_holds_the_text_and_no_escape_character(capsys: pytest.CaptureFixture[str]) -> None:
    print_json([("a", TransactionInfo("pending", 1, reason=HOSTILE + "\U000e0001"))])

    printed = capsys.readouterr().out
    assert all(line.isprintable() for line in printed.split("\n"))
    assert json.loads(printed)[0]["reason"] == HOSTILE + "\U000e0001"


def test_bytes_that_are_no_text_are_refused_before_any_broker_is_asked() -> None:
    command = [sys.executable, "-m", "rocketmq_broker.admin", "show", b"\xff\x1b"]
    done = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "NAMESRV_ADDR": "127.0.0.1:1"})

    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == "\\udcff\\x1b is not valid text in the encoding of this terminal\n"


def test_a_terminal_that_knows_few_letters_is_no_reason_to_fail() -> None:
    program = "import sys; from rocketmq_broker.admin.__main__ import main; sys.argv[1:] = ['show', 'é']; main()"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "NAMESRV_ADDR": "127.0.0.1:1"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, env=environment)

    assert b"Traceback" not in done.stderr
    assert done.returncode == 2


def test_times_that_no_clock_shows_are_told_in_milliseconds() -> None:
    assert time_text(2**80) == f"{2**80} ms after 1970"


@given(st.text(max_size=200))
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    try:
        duration_ms = parse_duration_ms(text)
    except ValueError as error:
        refusal = str(error)
    else:
        refusal = "" if 0 <= duration_ms <= MAX_MS else "wrong"
    assert refusal == "" or "duration" in refusal or "100 years" in refusal
