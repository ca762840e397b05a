"""The words in an address name buttons and their arguments. Parsing the words gives the same presses."""

import pytest

from demo.play.buttons import BUTTONS, DEFAULTS
from demo.play.texts.own_test import source_of_test
from demo.play.words import CannotPress, Press, press_of, pressed_words


@pytest.mark.parametrize(
    ("word", "arguments"),
    [
        ("place", {"customer": "alice", "amount": 2599}),
        ("place:bob", {"customer": "bob", "amount": 2599}),
        ("place:bob:900", {"customer": "bob", "amount": 900}),
        ("place:%E5%BC%A0%2C%3A:1", {"customer": "张,:", "amount": 1}),
    ],
)
def test_a_word_names_a_button_and_its_arguments(word: str, arguments: dict[str, object]) -> None:
    assert press_of(word, DEFAULTS) == Press("place", arguments)


@pytest.mark.parametrize("name", BUTTONS)
def test_each_button_is_one_word(name: str) -> None:
    press = press_of(name, DEFAULTS)
    assert pressed_words([press], DEFAULTS) == [name]


def test_arguments_are_part_of_the_word_if_one_is_not_the_default() -> None:
    presses = [Press("place", {"customer": "张,:", "amount": 2599})]
    words = pressed_words(presses, DEFAULTS)
    assert words == ["place:%E5%BC%A0%2C%3A:2599"]
    assert [press_of(word, DEFAULTS) for word in words] == presses


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("dance", "unknown button dance: must be one of place, "),
        ("kill:now", "kill takes at most 0 arguments, not 1"),
        ("place:bob:much", "amount must be a whole number, not 'much'"),
    ],
)
def test_a_wrong_word_is_refused_with_a_sentence(word: str, problem: str) -> None:
    with pytest.raises(CannotPress, match=problem):
        press_of(word, DEFAULTS)


@pytest.mark.parametrize("name", BUTTONS)
def test_each_button_has_a_line_in_the_readers_own_test(name: str) -> None:
    source = source_of_test(8, [press_of(name, DEFAULTS)], orders=1, credits=2)
    compile(source, "test_play.py", "exec")
    assert "RocketMQ(seed=8)" in source
    assert "{" not in source[source.index("async def test_") :]
