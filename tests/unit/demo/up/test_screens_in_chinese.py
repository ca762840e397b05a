"""The catalogue of the application's Chinese screens has every text of the templates."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from demo.scenarios import context, plays
from demo.scenarios.failpoints import FAILPOINTS
from demo.scenarios.plays import SCENARIOS
from demo.up import chapters, screens, second_opinion, shop
from demo.up.keeper import Health
from pipelines.judging.classes import CAUSES, MEANINGS
from rocketmq_broker.admin.console.wording.words import Words
from tests.unit.admin.console.catalogues import literal, lost_places, runs_of, sentences_of, templates_of

PRINTED = ('{"is_consistent": true}', '{"is_consistent": false}', "could not tell: why")
OUTCOMES = [second_opinion.Opinion(1.0, False, (line,)).meaning for line in PRINTED]
OF_TIMELINES = (
    "local transaction: order {0} of {1} for {2}",
    "the order service writes the marker ROLLED_BACK: no order will come under this transaction",
    "{0} credit points, stored by the Celery worker",
    "the message waits in the inbox of the credit service",
    "the credit failed: {0}",
    "inbox",
    "order database",
    "credit database",
    "log of {0}",
    "scenario",
    "local transaction: order {0} for {1} is CANCELLED",
    "the local transaction answers UNKNOWN: the order awaits its payment",
    "late local transaction",
    "local commit",
    "marker ROLLED_BACK",
)
"""What the services' databases say in timelines."""


NOTES = {"note": 0, "wait_until": 1, "_start_broker_again": 0}
"""The methods of a ScenarioContext that note a step, and the place of its words among their arguments."""


def noted_in(module: Path) -> Iterator[str]:
    """Yields the steps that scenarios note, as `What was done` shows them, with `{0}` for each inserted value."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in NOTES:
            said = literal(node.args[NOTES[node.func.attr]])
            if said:
                yield said


def test_each_run_of_words_in_the_templates_has_its_chinese_and_none_is_there_in_vain() -> None:
    known, runs = templates_of(screens.TEMPLATES), runs_of(screens.TEMPLATES)
    assert {run: template for run, template in runs.items() if run not in known} == {}, "add them to zh.json"
    assert known.keys() - runs.keys() == set(), "remove them from zh.json"


def test_each_translation_keeps_the_tags_of_its_run() -> None:
    words = templates_of(screens.TEMPLATES)
    assert {english: lost for english, chinese in words.items() if (lost := lost_places(english, chinese))} == {}


def test_scenarios_states_of_processes_and_what_forms_say_are_told_in_chinese() -> None:
    told = [text for one in SCENARIOS for text in (one.title, one.what_happens, one.expect, one.watch)]
    told += [sentence for module in (plays, context) for sentence in noted_in(Path(module.__file__))]
    told += [f"failpoint {one.name} is hit: {one.what}" for one in FAILPOINTS]
    told += [health.value for health in Health]
    told += [*MEANINGS.values(), *(name.replace("_", " ") for name in (*MEANINGS, *CAUSES)), *OUTCOMES, *OF_TIMELINES]
    told += sorted(sentence for module in (chapters, screens, shop) for sentence in sentences_of(Path(module.__file__)))
    told += ["One order, one credit", shop.HALF, shop.LOCAL, shop.COMMIT, "ROLLBACK", shop.DELIVERED, shop.CREDITED]
    told += [state.value for state in shop.StepProgress]
    known = templates_of(screens.TEMPLATES, "sentences")
    assert [text for text in told if text not in known] == [], "add them to zh.json"
    asked = {re.sub(" [A-Z_]+[?]$", " {0}?", question.words) for one in SCENARIOS for question in one.verdict}
    assert [text for text in asked if text not in known] == [], "add them to zh.json"
    assert len(known) == len({*told, *asked}) + 7, "remove what is there in vain"


def test_each_title_has_its_chinese() -> None:
    words = Words.of("zh", [screens.TEMPLATES])
    titles = set(re.findall(r'(?:Section\(|Screen\("[^"]*", )"([^"]+)"', Path(screens.__file__).read_text()))
    assert len(titles) == 7
    assert {title for title in titles if words.translated(title) == title} == set()
