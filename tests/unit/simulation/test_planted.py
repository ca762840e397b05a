"""Each planted bug replaces the named code, keeps signatures, and leaves no trace."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lab.simulation.judges.violation import Promise
from rocketmq_broker.client.producer.send_result import SendStatus
from rocketmq_broker.client.transaction import transaction_decision, transaction_producer
from rocketmq_broker.testing.exploring.search.worlds import FoundBroken
from rocketmq_broker.transaction.decision import CheckAction, decide_check
from tests.lab.planted import plugin
from tests.lab.planted.all_planted import PLANTED
from tests.lab.planted.finding import first_found
from tests.lab.planted.patches import Patches, PlantingFailed
from tests.lab.planted.planted_bug import PlantedBug

ROOT = Path(__file__).parents[3]

PAGE = (ROOT / "docs" / "simulation-planted.md").read_text()

each_bug = pytest.mark.parametrize("bug", PLANTED.values(), ids=PLANTED)


def present(owner: Any, name: str) -> Any:
    return vars(owner)[name]


@each_bug
def test_a_planted_bug_replaces_production_code_and_is_undone(bug: PlantedBug) -> None:
    patches = Patches()
    bug.plant(patches)
    made = list(patches.made)
    assert made
    assert all(present(patched.owner, patched.name) is patched.after for patched in made)
    patches.undo()
    assert all(present(patched.owner, patched.name) is patched.before for patched in made)


@each_bug
def test_a_planted_bug_is_described_by_a_sentence_a_promise_and_a_test_that_exists(bug: PlantedBug) -> None:
    assert bug.sentence.endswith(".")
    assert bug.sentence[0].isupper()
    assert bug.needs
    assert bug.breaks in Promise
    path, _, name = bug.noticed_by.partition("::")
    assert f"def {name}(" in (ROOT / path).read_text()


@each_bug
def test_the_page_has_a_row_of_each_planted_bug_and_says_what_those_without_a_seed_lack(bug: PlantedBug) -> None:
    assert f"| `{bug.name}` | {bug.sentence} | {bug.needs} | {bug.seed or '-'} |" in PAGE
    assert (f"- `{bug.name}`: " in PAGE) == (bug.seed is None)


def test_the_page_has_no_row_of_another_bug_and_counts_those_that_are_found() -> None:
    assert PAGE.count("\n| `") == len(PLANTED)
    assert f"{sum(bug.seed is not None for bug in PLANTED.values())} of {len(PLANTED)} are found" in PAGE


def test_an_error_in_the_block_leaves_nothing_planted() -> None:
    before = transaction_decision.state_without_listener
    seen: list[object] = []

    def fail_while_planted() -> None:
        with PLANTED["slow-flush-counts-as-stored"].planted():
            seen.append(transaction_decision.state_without_listener)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_while_planted()
    assert seen != [before]
    assert transaction_decision.state_without_listener is before


def test_a_function_is_replaced_where_it_was_imported() -> None:
    with PLANTED["slow-flush-counts-as-stored"].planted():
        assert vars(transaction_producer)["state_without_listener"] is transaction_decision.state_without_listener
    assert vars(transaction_producer)["state_without_listener"] is transaction_decision.state_without_listener


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


def test_a_hunt_finds_the_first_seed_that_fails_with_the_bug_only() -> None:
    bug = PLANTED["slow-flush-counts-as-stored"]

    def violations_of(seed: int) -> list[FoundBroken]:
        is_planted = transaction_decision.state_without_listener(SendStatus.FLUSH_DISK_TIMEOUT) is None
        return [FoundBroken(f"Promise {seed}.", "")] if seed == 2 or (seed > 3 and is_planted) else []

    assert first_found(bug, range(1, 9), violations_of) == (4, "Promise 4.")
    assert first_found(bug, range(1, 4), violations_of) is None


def test_the_plugin_plants_a_bug_until_the_run_ends() -> None:
    before = transaction_decision.state_without_listener
    ends: list[Callable[[], None]] = []
    options = {"--plant": "slow-flush-counts-as-stored"}
    plugin.pytest_configure(SimpleNamespace(getoption=options.get, add_cleanup=ends.append))  # type: ignore[arg-type]
    assert transaction_decision.state_without_listener is not before
    (end,) = ends
    end()
    assert transaction_decision.state_without_listener is before
