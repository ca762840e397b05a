"""Common mistakes with messages raise an error whose single sentence states the correct call or value."""

from typing import Any

import pytest

from rocketmq_broker.message import IllegalMessage, Message, properties
from rocketmq_broker.message.text.mistakes import kind_of, nearest_name, no_such_parameter


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (bytearray(b"x"), "must be bytes, not a bytearray: copy it with bytes()"),
        ({"order": 1}, "must be bytes, not a dict: encode it, for example with json.dumps(body).encode()"),
        (None, "must be bytes, not None"),
    ],
)
def test_a_body_that_is_no_bytes_is_refused(body: Any, sentence: str) -> None:
    for make in (lambda: Message.of("orders", body), lambda: Message(topic="orders", body=body)):
        with pytest.raises(TypeError) as refused:
            make()
        assert sentence in str(refused.value)


def test_a_body_that_is_text_is_sent_in_utf_8() -> None:
    message = Message.of("orders", "Grüße")
    assert (message.body, message.text) == ("Grüße".encode(), "Grüße")
    with pytest.raises(IllegalMessage, match="message body cannot be encoded in UTF-8"):
        Message.of("orders", "\ud800")


def test_a_body_that_is_no_text_says_so_when_it_is_read_as_text() -> None:
    with pytest.raises(UnicodeDecodeError):
        _ = Message.of("orders", b"\xff").text


def test_the_bare_class_takes_bytes_alone() -> None:
    with pytest.raises(TypeError, match=r"body of a message to topic orders must be bytes, not a str: encode it"):
        Message(topic="orders", body="text")  # type: ignore[arg-type]


def test_a_topic_that_is_no_str_is_refused() -> None:
    with pytest.raises(TypeError, match=r"message topic must be a str, not None$"):
        Message.of(None, b"x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be a str, not bytes: topic and body seem to be swapped"):
        Message.of(b"hello", "orders")  # type: ignore[arg-type]


def test_properties_that_are_no_mapping_are_refused() -> None:
    for given in (None, ["color"], "color=red"):
        with pytest.raises(TypeError, match="properties of a message to topic orders must be a dict of str, not "):
            Message(topic="orders", body=b"x", properties=given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ("order-1", "keys must be a list of str, not a str: use keys=['order-1']"),
        (None, "keys must be a list of str such as ['order-1'], not None"),
        (b"order-1", "keys must be a list of str such as ['order-1'], not bytes"),
        (7, "keys must be a list of str such as ['order-1'], not an int"),
        ([7], "key 7 must be a str, not an int"),
    ],
)
def test_keys_are_a_list_of_str(keys: Any, sentence: str) -> None:
    with pytest.raises(TypeError) as refused:
        Message.of("orders", b"x", keys=keys)
    assert sentence in str(refused.value)


@pytest.mark.parametrize("key", ["order 1", "", "order\t1", " order-1"])
def test_a_key_is_one_word(key: str) -> None:
    with pytest.raises(IllegalMessage, match="must be one word without spaces"):
        Message.of("orders", b"x", keys=[key])


def test_a_message_has_one_tag() -> None:
    with pytest.raises(TypeError, match="tags must be one tag such as 'created', not a list"):
        Message.of("orders", b"x", tags=["created", "paid"])  # type: ignore[arg-type]
    for tag in ("created || paid", " created"):
        with pytest.raises(IllegalMessage, match="tags must be one tag without"):
            Message.of("orders", b"x", tags=tag)


def test_a_delay_level_is_a_whole_number() -> None:
    for level in ("3", 3.0, True, None):
        with pytest.raises(TypeError, match="delay_time_level must be an int, not "):
            Message.of("orders", b"x", delay_time_level=level)  # type: ignore[arg-type]
    with pytest.raises(IllegalMessage, match="delay_time_level must be at least 0, not -1"):
        Message.of("orders", b"x", delay_time_level=-1)


@pytest.mark.parametrize(
    ("given", "kind", "sentence"),
    [
        ({"count": 1}, TypeError, "user property 'count' must be a str, not an int: convert it with str(1)"),
        ({1: "one"}, TypeError, "name of user property 1 must be a str, not an int"),
        (["color"], TypeError, "user_properties must be a dict such as {'color': 'red'}, not a list"),
        ({"color": ""}, IllegalMessage, "name and value of a user property must not be empty"),
        ({"KEYS": "a b"}, IllegalMessage, "user property 'KEYS' is reserved: pass it as the parameter keys"),
        ({"PGROUP": "mine"}, IllegalMessage, "user property 'PGROUP' is reserved: choose another name"),
    ],
)
def test_user_properties_are_named_strings(given: Any, kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind) as refused:
        Message.of("orders", b"x", user_properties=given)
    assert sentence in str(refused.value)


def test_a_flag_is_a_number_of_32_bits() -> None:
    with pytest.raises(TypeError, match="flag must be an int, not a str"):
        Message.of("orders", b"x", flag="1")  # type: ignore[arg-type]
    with pytest.raises(IllegalMessage, match="flag must be a signed 32-bit integer"):
        Message.of("orders", b"x", flag=2**31)


def test_an_unknown_parameter_is_named_with_the_one_that_was_meant() -> None:
    with pytest.raises(TypeError) as refused:
        Message.of("orders", b"x", key="order-1")  # type: ignore[arg-type]
    assert str(refused.value) == (
        "Message.of has no parameter 'key'. Did you mean 'keys'? It has: tags, keys, delay_time_level, user_properties, flag"
    )


def test_properties_of_other_types_are_refused_when_they_are_encoded() -> None:
    for wrong in (1, None, ["red"], b"red"):
        with pytest.raises(IllegalMessage, match="property 'color' must be a str, not "):
            properties.encode({"size": "9", "color": wrong})  # type: ignore[dict-item]
    with pytest.raises(IllegalMessage, match="the name of property 1 must be a str, not an int"):
        properties.encode({1: "one"})  # type: ignore[dict-item]
    with pytest.raises(IllegalMessage, match="cannot be encoded in UTF-8"):
        properties.encode({"half": "\ud83d"})


def test_what_is_right_passes() -> None:
    message = Message.of(
        "orders", b"", tags="created", keys=(key for key in ("a", "b")), delay_time_level=1, user_properties={"color": "red"}
    )
    assert dict(message.properties) == {"color": "red", "TAGS": "created", "KEYS": "a b", "DELAY": "1"}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("namesrv", "namesrv_addr"),
        ("namesrvAddr", "namesrv_addr"),
        ("consumeThreadMax", "consume_thread_max"),
        ("threads", "consume_thread_max"),
        ("colour", None),
    ],
)
def test_the_nearest_name_is_found_by_spelling_or_by_a_word(given: str, meant: str | None) -> None:
    assert nearest_name(given, ["namesrv_addr", "consume_thread_max", "pull_batch_size"]) == meant


def test_a_parameter_like_none_that_is_known_gets_no_suggestion() -> None:
    assert no_such_parameter("Producer", ["colour"], ["group"]) == "Producer has no parameter 'colour'. It has: group"


def test_values_are_called_by_their_type() -> None:
    assert [kind_of(value) for value in (None, 1, "x", b"", Message)] == ["None", "an int", "a str", "bytes", "the class Message"]
