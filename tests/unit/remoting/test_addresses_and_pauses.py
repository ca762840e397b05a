"""Tests peer addresses, pauses between attempts, and the response of programs that only send requests."""

import itertools
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.acl import SessionCredentials
from rocketmq_broker.protocol import FrameDecoder, RemotingCommand, RequestCode, ResponseCode, encode_request
from rocketmq_broker.protocol.headers.topic import ViewMessageRequestHeader
from rocketmq_broker.remoting.backoff import Backoff
from rocketmq_broker.remoting.client import RefusingHandler, split_address
from rocketmq_broker.remoting.connections.own_requests import SignedHeader, signed


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("127.0.0.1:10911", ("127.0.0.1", 10911)),
        ("[::1]:10911", ("::1", 10911)),
        ("broker.example:0", ("broker.example", 0)),
        ("a:65535", ("a", 65535)),
    ],
)
def test_an_address_is_host_and_port(address: str, parts: tuple[str, int]) -> None:
    assert split_address(address) == parts


@pytest.mark.parametrize("address", ["", "host", "host:", ":1", "host:-1", "host:65536", "host:1.5", "host:x"])
def test_what_is_no_address_says_what_one_looks_like(address: str) -> None:
    with pytest.raises(ValueError, match="address must be HOST:PORT"):
        split_address(address)


@given(st.floats(0.001, 10), st.floats(10, 100), st.integers(1, 20))
def test_pauses_double_up_to_the_maximum_and_start_over_after_a_success(first: float, longest: float, failures: int) -> None:
    backoff = Backoff(first, longest)
    pauses = [backoff.next_pause_s() for _ in range(failures)]
    assert pauses[0] == first
    assert all(later == min(earlier * 2, longest) for earlier, later in itertools.pairwise(pauses))
    backoff.succeeded()
    assert backoff.next_pause_s() == first


def request(oneway: bool) -> RemotingCommand:
    (command,) = FrameDecoder().feed(encode_request(RequestCode.HEART_BEAT, opaque=9, oneway=oneway))
    return command


def test_who_only_asks_refuses_what_it_is_asked() -> None:
    sent: list[bytes] = []

    class Connection:
        def send(self, frame: bytes) -> None:
            sent.append(frame)

    handler, connection = RefusingHandler(), cast(Any, Connection())
    handler.on_connected(connection)
    handler.on_requests(connection, [request(oneway=True), request(oneway=False)])
    handler.on_disconnected(connection)
    (answer,) = FrameDecoder().feed(b"".join(sent))
    assert (answer.code, answer.opaque) == (ResponseCode.REQUEST_CODE_NOT_SUPPORTED, 9)
    assert answer.remark == f" request type {RequestCode.HEART_BEAT} not supported"


def test_a_signed_header_has_the_fields_of_the_one_it_signs() -> None:
    credentials = SessionCredentials("key", "the secret", "token")
    fields = signed(ViewMessageRequestHeader(offset=7), b"body", credentials).ext_fields()
    assert fields["offset"] == "7"
    assert (fields["AccessKey"], fields["SecurityToken"]) == ("key", "token")
    assert signed(ViewMessageRequestHeader(offset=7), b"other", credentials).ext_fields()["Signature"] != fields["Signature"]
    assert set(signed(None, b"", credentials).ext_fields()) == {"AccessKey", "SecurityToken", "Signature"}


def test_an_empty_value_is_signed_but_not_written_in_binary() -> None:
    header = SignedHeader({"topic": "t", "properties": ""})
    assert b"properties" not in header.encode_binary()
    assert header.ext_fields()["properties"] == ""


def test_a_pause_in_a_long_outage_is_a_tenth_of_all_pauses_before_it_up_to_a_limit() -> None:
    backoff = Backoff(1, 2, in_outages_s=10)
    pauses = [backoff.next_pause_s() for _ in range(40)]
    assert pauses[:12] == [1, *[2] * 10, 2.1]
    # Since Python 3.12, `sum` rounds once, at the end.
    assert pauses[1:] == pytest.approx([min(10, max(2, sum(pauses[:count]) / 10)) for count in range(1, 40)])
    assert pauses[-1] == 10
    backoff.succeeded()
    assert backoff.next_pause_s() == 1
