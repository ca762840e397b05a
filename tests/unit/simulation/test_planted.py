"""Each planted bug replaces the named code, keeps signatures, and leaves no trace."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lab.simulation.judges.violation import Promise
from lab.simulation.planted.all_planted import ALL_PLANTED, find_planted, planted
from lab.simulation.planted.bug import Planted, PlantedArea
from lab.simulation.planted.found import FOUND
from lab.simulation.planted.noticed import NOTICED_BY
from lab.simulation.planted.patches import Patches, PlantingFailed
from lab.simulation.planted.table import as_markdown
from rocketmq_broker.client.transaction import transaction_decision, transaction_producer
from rocketmq_broker.transaction.decision import CheckAction, decide_check

ROOT = Path(__file__).parents[3]

each_bug = pytest.mark.parametrize("bug", ALL_PLANTED, ids=[bug.name for bug in ALL_PLANTED])


def present(owner: Any, name: str) -> Any:
    return vars(owner)[name]


@each_bug
def test_a_planted_bug_replaces_production_code_and_is_undone(bug: Planted) -> None:
    patches = Patches()
    bug.plant(patches)
    made = list(patches.made)
    assert made
    assert all(present(patched.owner, patched.name) is patched.after for patched in made)
    patches.undo()
    assert all(present(patched.owner, patched.name) is patched.before for patched in made)


@each_bug
def test_a_planted_bug_is_told_in_plain_sentences(bug: Planted) -> None:
    assert bug.sentence.endswith(".")
    assert bug.sentence[0].isupper()
    assert bug.needs
    assert bug.breaks in Promise
    assert bug.name == bug.name.lower().replace(" ", "-")


def test_each_area_has_at_least_five_planted_bugs() -> None:
    bugs = Counter(bug.area for bug in ALL_PLANTED)
    assert min(bugs[area] for area in PlantedArea) >= 5
    assert len(ALL_PLANTED) >= 32


def test_each_planted_bug_has_a_name_of_its_own() -> None:
    assert len({bug.name for bug in ALL_PLANTED}) == len(ALL_PLANTED)


def test_an_error_in_the_block_leaves_nothing_planted() -> None:
    before = transaction_decision.state_without_listener
    seen: list[object] = []

    def fail_while_planted() -> None:
        with planted("slow-flush-counts-as-stored"):
            seen.append(transaction_decision.state_without_listener)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_while_planted()
    assert seen != [before]
    assert transaction_decision.state_without_listener is before


def test_a_function_is_replaced_where_it_was_imported() -> None:
    with planted("slow-flush-counts-as-stored"):
        assert vars(transaction_producer)["state_without_listener"] is transaction_decision.state_without_listener
    assert vars(transaction_producer)["state_without_listener"] is transaction_decision.state_without_listener


def test_a_name_that_cannot_be_planted_is_answered_with_all_that_can() -> None:
    with pytest.raises(KeyError, match="op-message-first"):
        find_planted("no-such-bug")


@pytest.mark.parametrize(
    "target",
    [
        "rocketmq_broker.no_such_module:decide_check",
        "rocketmq_broker.transaction.decision:no_such_function",
        "rocketmq_broker.transaction.decision:NoSuchClass.method",
    ],
)
def test_a_target_that_was_renamed_cannot_be_planted(target: str) -> None:
    with pytest.raises(PlantingFailed, match="renamed"):
        Patches().replace(target, decide_check)


def test_a_replacement_with_another_signature_cannot_be_planted() -> None:
    def decide_without_policy(transaction: object, now_ms: int) -> CheckAction:
        raise NotImplementedError

    with pytest.raises(PlantingFailed, match="signature"):
        Patches().replace("rocketmq_broker.transaction.decision:decide_check", decide_without_policy)


def test_a_coroutine_function_cannot_be_replaced_by_a_plain_one() -> None:
    def send(self: object) -> bool:
        raise NotImplementedError

    with pytest.raises(PlantingFailed, match="signature"):
        Patches().replace("rocketmq_broker.client.instance.heartbeats:Heartbeats.send", send)


def test_a_property_is_replaced_by_a_property() -> None:
    class_of_queue = "rocketmq_broker.client.pull.process_queue:ProcessQueue"

    def span(self: object) -> int:
        return 4711

    patches = Patches()
    patches.replace(f"{class_of_queue}.span", span)
    try:
        (patched,) = patches.made
        assert isinstance(patched.after, property)
        assert patched.after.fget is span
    finally:
        patches.undo()


def test_it_is_said_of_each_bug_which_test_notices_it() -> None:
    assert set(NOTICED_BY) == {bug.name for bug in ALL_PLANTED}
    assert set(FOUND) <= set(NOTICED_BY)


@pytest.mark.parametrize("place", sorted({place for place in NOTICED_BY.values() if place is not None}))
def test_a_test_that_notices_a_bug_exists(place: str) -> None:
    path, _, name = place.partition("::")
    assert f"def {name}(" in (ROOT / path).read_text()


def test_the_page_shows_the_table_of_all_bugs() -> None:
    assert as_markdown(ALL_PLANTED) in (ROOT / "docs" / "simulation-planted.md").read_text()
