"""Tests bodies that are not standard JSON: how they are read, and which are refused."""

from enum import Enum
from typing import ClassVar

import msgspec
import pytest

from rocketmq_broker.message.configs import TopicConfig
from rocketmq_broker.protocol import BodyError
from rocketmq_broker.protocol.bodies.group import ConsumerOffsetSerializeWrapper, QueryCorrectionOffsetBody
from rocketmq_broker.protocol.bodies.topic import TopicList
from rocketmq_broker.protocol.body import Body, BodyPart, decode_body


class Colour(Enum):
    RED = "RED"
    GREEN = "GREEN"


class Part(BodyPart):
    name: str = "nobody"
    count: int = 0
    colour: Colour | None = None


class Example(Body):
    constants: ClassVar = {"colour": Colour}
    lenient_limit: ClassVar[int | None] = 100
    parts: list[Part] = []
    by_number: dict[int, Part] = {}
    a_text: str | None = None


def test_names_go_by_camel_case_and_none_is_left_out_at_any_depth() -> None:
    body = Example(parts=[Part(colour=Colour.RED), Part("x", 1)], by_number={7: Part()})
    assert body.encode() == (
        b'{"parts":[{"name":"nobody","count":0,"colour":"RED"},{"name":"x","count":1}],'
        b'"byNumber":{"7":{"name":"nobody","count":0}}}'
    )
    assert Example.decode(body.encode()) == body


def test_a_text_that_says_null_stays() -> None:
    assert Example(a_text='":null').encode() == b'{"parts":[],"byNumber":{},"aText":"\\":null"}'


def test_a_member_that_is_not_set_is_not_written() -> None:
    assert b"attributes" not in msgspec.json.encode(TopicConfig("orders"))
    body = ConsumerOffsetSerializeWrapper(offset_table={"orders@g": {0: 7}})
    assert body.encode() == b'{"offsetTable":{"orders@g":{"0":7}}}'


@pytest.mark.parametrize(
    "text",
    [
        b'{"parts":[{"count":"7"}]}',
        b"{parts:[{count:7}]}",
        b'{"parts":[{"count":7,"name":null}]}',
        b'{"parts":[{"count":7,"colour":null}]}',
        b' { "parts" : [ { "count" : 7 } ] } \n',
    ],
)
def test_quotes_blanks_and_nulls_may_be_where_fastjson_takes_them(text: bytes) -> None:
    assert Example.decode(text).parts == [Part(count=7)]


@pytest.mark.parametrize(("ordinal", "colour"), [(0, Colour.RED), (1, Colour.GREEN)])
def test_an_ordinal_stands_for_its_constant(ordinal: int, colour: Colour) -> None:
    assert Example.decode(b'{"parts":[{"colour":%d}]}' % ordinal).parts[0].colour is colour


@pytest.mark.parametrize("ordinal", [-1, 2, 10**30])
def test_an_ordinal_of_no_constant_is_refused(ordinal: int) -> None:
    with pytest.raises(BodyError, match="invalid Example body"):
        Example.decode(b'{"parts":[{"colour":%d}]}' % ordinal)


def test_keys_that_are_numbers_may_have_no_quotes() -> None:
    assert QueryCorrectionOffsetBody.decode(b'{"correctionOffsets":{0:5,1:"6"}}').correction_offsets == {0: 5, 1: 6}


def test_a_longer_body_has_to_be_standard_json() -> None:
    filling = b'"unknown":"%b"' % (b"x" * 100)
    assert Example.decode(b'{"parts":[{"count":7}],%b}' % filling).parts == [Part(count=7)]
    with pytest.raises(BodyError, match=r"Example body is not standard JSON"):
        Example.decode(b'{"parts":[{"count":"7"}],%b}' % filling)


def test_a_body_without_a_limit_is_read_however_long_it_is() -> None:
    class Unlimited(Example):
        lenient_limit = None

    names = b",".join(b'{name:"%d"}' % number for number in range(5000))
    assert len(Unlimited.decode(b"{parts:[%b]}" % names).parts) == 5000


def test_bodies_that_are_no_objects_are_read_as_well() -> None:
    assert decode_body(list[str], b'["a"]') == ["a"]
    assert decode_body(list[int], b'["1",2]') == [1, 2]
    with pytest.raises(BodyError, match="invalid list body"):
        decode_body(list[int], b'["one"]')


@pytest.mark.parametrize("text", [b"", b"nul", b"[", b'{"topicList":["a"', b'{"topicList":{}}', b'{"topicList":[1]}', b"\x00"])
def test_a_body_that_makes_no_sense_is_refused_by_its_name(text: bytes) -> None:
    with pytest.raises(BodyError, match="TopicList"):
        TopicList.decode(text)
