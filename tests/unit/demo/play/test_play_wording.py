"""Each text on the page has a Chinese translation, and each round is complete in both languages."""

import json
import re
from pathlib import Path

import pytest

from demo.play import session
from demo.play.buttons import BUTTONS
from demo.play.rounds import ROUNDS, Round, rounds_in
from demo.play.verdict import GRACE_S, SessionVerdict
from demo.play.wording import translated
from pipelines.judging.classes import Cause, Finding

TEXTS = Path(session.__file__).parent / "texts"
CHINESE = re.compile("[\u4e00-\u9fff]")
PLACES = re.compile(r"\{(\d)\}")


@pytest.mark.parametrize("name", BUTTONS)
def test_each_label_has_its_chinese_words(name: str) -> None:
    label = BUTTONS[name].label
    assert translated(label, "en") == label
    assert CHINESE.search(translated(label, "zh"))


def test_an_unknown_language_is_answered_in_english() -> None:
    assert translated("Place an order", "fr") == "Place an order"


def test_both_sentences_of_the_catalogue_have_the_same_places() -> None:
    sentences = json.loads((TEXTS / "zh.json").read_text(encoding="utf-8"))["sentences"]
    for english, chinese in sentences.items():
        assert set(PLACES.findall(chinese)) <= set(PLACES.findall(english)), english


@pytest.mark.parametrize(
    ("findings", "en"),
    [
        ([], "Consistent: each order has one credit."),
        ([Finding.IN_FLIGHT], "Consistent so far: 1 order is on the way."),
        ([Finding.IN_FLIGHT] * 2, "Consistent so far: 2 orders are on the way."),
        ([Finding.DOUBLE_CREDIT], "Not consistent: 1 problem."),
        ([Finding.MISSING_CREDIT] * 2 + [Finding.MATCHED], "Not consistent: 2 problems."),
    ],
)
def test_the_verdict_counts_what_is_wrong(findings: list[Finding], en: str) -> None:
    row = {"order_id": "1", "customer": "ada", "cause": Cause.ONE_MESSAGE}
    verdict = SessionVerdict([row | {"finding": finding} for finding in findings])
    assert verdict.to_json("en")["text"] == en
    assert CHINESE.search(verdict.to_json("zh")["text"])
    assert all(CHINESE.search(order["problem"]) for order in verdict.to_json("zh")["orders"])
    assert GRACE_S < 60


@pytest.mark.parametrize("each", ROUNDS, ids=lambda each: each.name)
def test_a_round_is_complete_in_both_languages(each: Round) -> None:
    for language, text in each.texts.items():
        assert len(text.steps) == len(each.steps)
        assert all((text.title, text.text, text.question, text.answer, *text.steps))
        assert bool(CHINESE.search(text.text)) == (language == "zh")
    assert each.to_json("zh")["title"] == each.texts["zh"].title
    assert {word.partition(":")[0] for word in each.words} <= set(BUTTONS)


def test_the_rounds_have_different_names() -> None:
    assert len({each["name"] for each in rounds_in("fr")}) == len(ROUNDS) == 11
