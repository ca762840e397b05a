"""Tests message properties, which are encoded in one string that is searched and changed without decoding."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rocketmq_broker.message import IllegalMessage, properties

text = st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), min_size=1, max_size=12)
property_maps = st.dictionaries(text, text, max_size=8)


@given(property_maps)
def test_properties_come_back_as_they_went(values: dict[str, str]) -> None:
    assert properties.decode(properties.encode(values)) == values


@given(property_maps, text)
def test_find_gives_what_decoding_all_would_give(values: dict[str, str], name: str) -> None:
    encoded = properties.encode(values)
    assert properties.find(encoded, name) == values.get(name)
    for known, value in values.items():
        assert properties.find(encoded, known) == value


@given(property_maps, text, text, st.booleans())
def test_put_sets_one_and_leaves_the_others_in_their_order(
    values: dict[str, str], name: str, value: str, ends_with_separator: bool
) -> None:
    encoded = properties.encode(values) + (b"\x02" if ends_with_separator and values else b"")
    changed = properties.decode(properties.put(encoded, name, value))
    assert list(changed.items()) == list({**values, name: value}.items())


@given(property_maps, st.lists(text, max_size=3), st.data())
def test_remove_takes_those_named_and_leaves_the_others(values: dict[str, str], unknown: list[str], data: st.DataObject) -> None:
    known = data.draw(st.lists(st.sampled_from(sorted(values)), unique=True)) if values else []
    changed = properties.remove(properties.encode(values), [*known, *unknown])
    gone = {*known, *unknown}
    assert list(properties.decode(changed).items()) == [item for item in values.items() if item[0] not in gone]


@given(property_maps, text)
def test_what_was_put_can_be_removed_without_a_trace(values: dict[str, str], name: str) -> None:
    assume(name not in values)
    encoded = properties.encode(values)
    assert properties.remove(properties.put(encoded, name, "value"), [name]) == encoded


def test_a_name_that_ends_like_another_is_not_taken_for_it() -> None:
    encoded = properties.encode({"XTAGS": "wrong", "TAGS": "right"})
    assert properties.find(encoded, "TAGS") == "right"
    assert properties.find(properties.encode({"K": "TAGS"}), "TAGS") is None


def test_a_pair_without_name_or_value_is_passed_over() -> None:
    assert properties.decode(b"a\x011\x02\x01x\x02b\x01\x02c\x02\x02d\x014\x02") == {"a": "1", "d": "4"}


@pytest.mark.parametrize(("name", "value"), [("", "v"), ("a\x01b", "v"), ("a\x02", "v"), ("a", "v\x01"), ("a", "\x02")])
def test_separators_and_empty_names_are_refused(name: str, value: str) -> None:
    with pytest.raises(IllegalMessage):
        properties.encode({name: value})
    with pytest.raises(IllegalMessage):
        properties.put(b"", name, value)


pairs = st.lists(st.tuples(st.sampled_from(["A", "B", "AB", ""]), st.sampled_from(["", "1", "2", "A", "B\x013"])), max_size=8)


def joined(some_pairs: list[tuple[str, str]]) -> bytes:
    return "\x02".join(name + "\x01" + value for name, value in some_pairs).encode()


@given(pairs, st.sampled_from(["A", "B", "AB"]))
def test_of_one_name_written_several_times_the_last_with_a_value_counts_for_every_reader(
    some_pairs: list[tuple[str, str]], name: str
) -> None:
    assert properties.find(joined(some_pairs), name) == properties.decode(joined(some_pairs)).get(name)


@given(pairs, st.sampled_from(["A", "B", "AB"]))
def test_what_was_put_is_what_counts_though_the_name_stood_there_several_times(
    some_pairs: list[tuple[str, str]], name: str
) -> None:
    changed = properties.put(joined(some_pairs), name, "put")
    assert properties.decode(changed) == {**properties.decode(joined(some_pairs)), name: "put"}


@given(pairs, st.sampled_from(["A", "B", "AB"]))
def test_remove_takes_a_name_as_often_as_it_stands_there(some_pairs: list[tuple[str, str]], name: str) -> None:
    changed = properties.remove(joined(some_pairs), [name])
    assert not [pair for pair in changed.split(b"\x02") if pair.startswith(name.encode() + b"\x01")]
    others = {other: value for other, value in properties.decode(joined(some_pairs)).items() if other != name}
    assert properties.decode(changed) == others


def test_a_name_written_ten_thousand_times_without_a_value_is_not_there() -> None:
    encoded = b"A\x01\x02" * 10_000
    assert properties.find(encoded, "A") is None
    assert properties.find(b"A\x011\x02" + encoded, "A") == "1"
    assert properties.decode(properties.put(encoded, "A", "2")) == {"A": "2"}
    assert properties.remove(encoded, ["A"]) == b""
