"""Tests what a repair does with dead letters and discarded half messages, and when it does nothing."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from pipelines.repair import at_brokers
from pipelines.repair.at_brokers import BrokerSteps
from pipelines.repair.message_again import REPAIR, body_of
from pipelines.repair.plan import Action, OrderFields, RepairPlan, RepairStep, StepOutcome, StepState
from rocketmq_broker.message import Message

PLANNED_MS = 1_000
ORDER = OrderFields("order-1", "ada", 1250, "EUR", 5)


class Brokers:
    """One broker with dead letters and discarded half messages, and the requests that change them."""

    def __init__(self, letters: list[Any] | None = None, discarded: list[Any] | None = None, failures: int = 0) -> None:
        self.letters = letters or []
        self.discarded = discarded or []
        self.failures = ["broker-b does not respond"] * failures
        self.changed: list[str] = []
        self.address = "broker-a:10911"

    async def ask_each(self, request: object) -> list[tuple[Any, list[Any]]]:
        return [(self, self.discarded)]

    async def resume(self, message_id: str) -> None:
        self.changed.append(message_id)


def letter(offset_message_id: str, parked_ms: int, treatment: str | None = None) -> Any:
    treated = None if treatment is None else SimpleNamespace(treatment=treatment, reason="a person knows why")
    return SimpleNamespace(letter=SimpleNamespace(offset_message_id=offset_message_id, parked_ms=parked_ms, treatment=treated))


def discarded(message_id: str, discarded_ms: int, *, is_resumed: bool = False) -> Any:
    return SimpleNamespace(message_id=message_id, discarded_ms=discarded_ms, is_resumed=is_resumed)


def record(body: bytes, **properties: str) -> Any:
    return SimpleNamespace(body=body, properties=properties, offset_message_id="stored")


def carried_out(action: Action, brokers: Any, monkeypatch: pytest.MonkeyPatch, *, to_group_only: bool = False) -> StepOutcome:
    async def find(*_: object) -> list[Any]:
        found: list[Any] = brokers.letters
        return found

    async def retry(found: Any, *, again: bool, reason: str) -> None:
        assert (again, reason) == (False, "repair step-1")
        brokers.changed.append(found.letter.offset_message_id)

    async def send(session: object, message: Message, world: object) -> tuple[str, Any]:
        brokers.changed.append(message.topic)
        return "broker-a:10911", SimpleNamespace(offset_message_id="sent")

    monkeypatch.setattr(at_brokers, "send", send)
    monkeypatch.setattr(at_brokers, "_message_of", lambda record: record)
    monkeypatch.setattr(at_brokers, "find_dead_letters", find)
    monkeypatch.setattr(at_brokers, "retry", retry)
    plan = RepairPlan(PLANNED_MS, "orders", "credit_service", [], [])
    step = RepairStep(
        "step-1", action, "order-1", "missing_credit", [], transaction_id="T-1", order=ORDER, to_group_only=to_group_only
    )
    return asyncio.run(BrokerSteps(brokers, plan).carry_out(step))


@pytest.mark.parametrize(
    ("action", "messages", "state", "changed"),
    [
        (Action.RETRY, [letter("first", 10), letter("latest", PLANNED_MS)], StepState.DONE, ["latest"]),
        (Action.RETRY, [letter("planned", 10), letter("newer", PLANNED_MS + 1)], StepState.DONE, ["planned"]),
        (Action.RETRY, [letter("newer", PLANNED_MS + 1)], StepState.FAILED, []),
        (Action.RETRY, [letter("retried", 10, "retried")], StepState.DONE_BEFORE, []),
        (Action.RETRY, [letter("dismissed", 10, "dismissed")], StepState.FAILED, []),
        (Action.RETRY, [], StepState.FAILED, []),
        (Action.RESUME, [discarded("first", 10), discarded("latest", PLANNED_MS)], StepState.DONE, ["latest"]),
        (Action.RESUME, [discarded("newer", PLANNED_MS + 1)], StepState.FAILED, []),
        (Action.RESUME, [discarded("resumed", 10, is_resumed=True)], StepState.DONE_BEFORE, []),
        (Action.RESUME, [], StepState.FAILED, []),
    ],
)
def test_the_latest_dead_letter_or_discarded_half_message_of_the_plan_is_sent_again_once(
    action: Action, messages: list[Any], state: StepState, changed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers = Brokers(letters=messages, discarded=messages)
    assert (carried_out(action, brokers, monkeypatch).state, brokers.changed) == (state, changed)


@pytest.mark.parametrize(
    ("records", "to_group_only", "state", "changed"),
    [
        ([], False, StepState.DONE, ["orders"]),
        ([record(b"of this repair", **{REPAIR: "step-1"})], False, StepState.DONE_BEFORE, []),
        ([record(body_of(ORDER))], False, StepState.DONE_BEFORE, []),
        ([record(body_of(ORDER))], True, StepState.DONE, ["%RETRY%credit_service"]),
        ([record(body_of(replace(ORDER, total_cents=1)))], True, StepState.FAILED, []),
    ],
)
def test_a_message_is_published_again_unless_the_topic_has_it_or_its_original_differs(
    records: list[Any], to_group_only: bool, state: StepState, changed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers = Brokers(discarded=records)
    outcome = carried_out(Action.PUBLISH, brokers, monkeypatch, to_group_only=to_group_only)
    assert (outcome.state, brokers.changed) == (state, changed)


@pytest.mark.parametrize("action", [Action.RETRY, Action.RESUME, Action.PUBLISH])
def test_nothing_is_done_while_a_broker_that_may_have_the_message_does_not_respond(
    action: Action, monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers = Brokers([letter("latest", 10)], [discarded("latest", 10)], failures=1)
    outcome = carried_out(action, brokers, monkeypatch)
    assert (outcome, brokers.changed) == (StepOutcome(StepState.FAILED, "broker-b does not respond"), [])
