"""Tests the console in Chinese: the catalogue has every template text, and the rest of a page stays the same."""

import json
import re
from pathlib import Path

import pytest

from rocketmq_broker.admin.console.brokers import Brokers
from rocketmq_broker.admin.console.drawing.sequence import sequence_diagram
from rocketmq_broker.admin.console.sampling import Sampler
from rocketmq_broker.admin.console.screens import own_screens, own_sections
from rocketmq_broker.admin.console.visit import Visit
from rocketmq_broker.admin.console.wording.template_words import with_words, words_of
from rocketmq_broker.admin.console.wording.words import Words
from rocketmq_broker.admin.replay import HISTORIES, LANES, replay
from rocketmq_broker.admin.session import Target
from rocketmq_broker.transaction.states import State
from rocketmq_broker.world import current_world
from tests.unit.admin.console.catalogues import CONSOLE, lost_places, runs_of, sentences_of, templates_of

CHINESE = Words.of("zh", [CONSOLE])
BROKERS = Brokers(Target(namesrv_addr="127.0.0.1:9876"))


def test_each_run_of_words_in_the_templates_has_its_chinese() -> None:
    known = templates_of(CONSOLE)
    assert {run: template for run, template in runs_of(CONSOLE).items() if run not in known} == {}, "add them to zh.json"


def test_the_catalogue_has_nothing_in_vain() -> None:
    assert templates_of(CONSOLE).keys() - runs_of(CONSOLE).keys() == set(), "remove them from zh.json"


def test_each_translation_keeps_the_tags_of_its_run() -> None:
    words = templates_of(CONSOLE)
    assert {english: lost for english, chinese in words.items() if (lost := lost_places(english, chinese))} == {}


def test_each_title_each_heading_and_each_state_has_its_chinese() -> None:
    screens = own_screens(Sampler(BROKERS, current_world()), (), (), "/")
    visit = Visit(BROKERS, {"topic": "orders", "group": "shops"}, lambda: 0)
    said = [screen.title for screen in screens] + [screen.heading(visit) for screen in screens if screen.heading]
    said += [section.title for section in own_sections("/")] + [state.value for state in State]
    assert [one for one in said if CHINESE.translated(one) == one] == []


def test_what_forms_say_has_its_chinese() -> None:
    known = templates_of(CONSOLE, "sentences")
    said = {sentence for module in (CONSOLE.parent / "screens").glob("*.py") for sentence in sentences_of(module)}
    assert len(said) > 20
    assert said - known.keys() == set(), "add them to zh.json"


def test_the_replayed_histories_have_their_chinese() -> None:
    said = {word for history in HISTORIES.values() for word in (history.title, history.summary)}
    for history in HISTORIES.values():
        drawn = sequence_diagram(replay(history).events, LANES)
        said |= {row.what for row in drawn.rows} | {row.label for row in drawn.rows} | {wait.text for wait in drawn.waits}
    unchanged = {one for one in said if CHINESE.translated(one) == one}
    assert {one.split()[0] for one in unchanged} == {"COMMIT", "ROLLBACK", "UNKNOWN"}


@pytest.mark.parametrize(
    ("english", "parts"),
    [
        ("check-back 7: the broker asks the producer at 10.0.0.1:5000", ["第 7 次回查", "Broker 询问 10.0.0.1:5000 的生产者"]),
        (
            "check-back 3 to 9, every 2 s, answered UNKNOWN, for 12 s: the broker asks the producer at 10.0.0.1",
            ["第 3 至 9 次回查", "每 2 s 一次", "回答 UNKNOWN", "历时 12 s", "Broker 询问 10.0.0.1 的生产者"],
        ),
        ("the producer at 10.0.0.1:5000 answers UNKNOWN", ["10.0.0.1:5000 的生产者回答 UNKNOWN"]),
        ("the producer at 10.0.0.1:5000 answers UNKNOWN: no table: x", ["10.0.0.1:5000 的生产者回答 UNKNOWN", "no table: x"]),
        ("check-back 7", ["第 7 次回查"]),
        ("check-back 7: the broker asks the producer about order-1", ["第 7 次回查", "Broker 向生产者询问 order-1"]),
        ("9 check-backs, every 1 m, answered UNKNOWN", ["9 次回查", "每 1 m 一次", "回答 UNKNOWN"]),
        (
            "9 check-backs, every 1 m, answered UNKNOWN, copies of the half message written: 8",
            ["9 次回查", "每 1 m 一次", "回答 UNKNOWN", "写入的半消息副本", "8"],
        ),
        (
            "9 check-backs, every 1 m, without an answer, copies of the half message written: 8",
            ["9 次回查", "每 1 m 一次", "没有回答", "写入的半消息副本", "8"],
        ),
    ],
)
def test_sentences_of_a_timeline_that_are_alike_keep_apart(english: str, parts: list[str]) -> None:
    assert re.split("[\uff0c\uff1a]", str(CHINESE.translated(english))) == parts


@pytest.mark.parametrize(
    ("source", "runs"),
    [
        ("<p>No problems found.</p>", ["No problems found."]),
        ("<th>age</th><th></th><th>{{ x }}</th>", ["age"]),
        ("<p>Go <a href='/'>to the\n overview</a>.</p>", ["Go <0>to the overview<1>."]),
        ("<strong>in {{ x }}</strong>", ["in {0}"]),
        ("<p>{% if a > b %}yes{% else %}no {{ n }}{% endif %}</p>", ["yes", "no {0}"]),
        ('<input placeholder="an id" value="kept"{% if x > 1 %} disabled{% endif %}>', ["an id"]),
        ('<b class="{{ "a" if x > 1 }}" title="{{ x }}">', []),
        ("<pre class='body'>curl -s</pre>{# a comment #}<!-- another -->", []),
    ],
)
def test_words_are_found_between_the_blocks_of_a_page_and_in_some_attributes(source: str, runs: list[str]) -> None:
    assert words_of(source) == runs


def test_translated_words_stand_where_the_english_ones_stood() -> None:
    source = '<p title="an id"> {{ a }} of <a href="/x">{{ b }} orders</a> </p>\n{% if c %}<td>kept</td>{% endif %}'
    words = {"an id": "号", "{0} of <1>{2} orders": "共 <1>{2} 单 {0}"}
    expected = '<p title="号"> 共 <a href="/x">{{ b }} 单 {{ a }}</a> </p>\n{% if c %}<td>kept</td>{% endif %}'
    assert with_words(source, words.get) == expected


def test_a_sentence_of_a_program_is_told_with_what_differs_and_an_unknown_one_as_it_is() -> None:
    words = Words({}, {"Topic {0}": "主题 {0}", "a of {0} in {1}": "{1} 的 {0}"})
    assert words.translated("Topic a {0}") == "主题 a {0}"
    assert words.translated("a of b in c") == "c 的 b"
    assert words.translated("My Topic x") == "My Topic x"
    assert words.translated(7) == 7


def test_where_two_catalogues_differ_the_first_folder_counts(tmp_path: Path) -> None:
    for folder, word in ((tmp_path / "a", "甲"), (tmp_path / "b", "乙")):
        folder.mkdir()
        (folder / "zh.json").write_text(json.dumps({"templates": {"x": word}, "sentences": {}}), encoding="utf-8")
    assert Words.of("zh", [tmp_path / "a", tmp_path / "b", tmp_path / "none"]).templates == {"x": "甲"}
    assert Words.of("en", [tmp_path / "a"]).templates == {}
