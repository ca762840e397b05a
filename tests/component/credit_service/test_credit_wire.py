"""Consumers and workers of different versions understand each other's tasks."""

import json
from dataclasses import MISSING, fields

import pytest

from credit_service.adapters.celery_app import CREDIT_TASK
from credit_service.adapters.celery_tasks import task_for
from credit_service.adapters.credit_task import register_credit_task
from credit_service.adapters.credit_wire import UnreadableCredit, from_wire, to_wire
from credit_service.adapters.tables import MIGRATIONS
from credit_service.domain.credit import Credit
from order_messages.states import EntryKind
from rocketmq_broker.world import World
from service_runtime.database.opening import open_database
from tests.component.credit_service.conftest import a_credit, a_reversal
from tests.component.credit_service.test_celery_crediting import in_memory

FIELDS_OF_THE_FIRST_VERSION = {"order_id", "customer", "amount_cents", "message_id", "transaction_id"}


def test_a_credit_comes_out_as_it_went_in() -> None:
    assert from_wire(to_wire(a_credit("1"))) == a_credit("1")
    assert from_wire(json.loads(json.dumps(to_wire(a_reversal("1"))))) == a_reversal("1")


def test_a_batch_with_a_reversal_is_a_task_that_no_worker_of_the_first_version_takes_for_credits() -> None:
    assert task_for([to_wire(a_credit("1")), to_wire(a_credit("2"))]) == CREDIT_TASK == "credit_service.credit_orders"
    assert task_for([to_wire(a_credit("1")), to_wire(a_reversal("2"))]) != CREDIT_TASK
    assert task_for([]) == CREDIT_TASK


def test_what_an_older_consumer_sends_is_a_credit() -> None:
    assert from_wire({name: to_wire(a_credit("1"))[name] for name in FIELDS_OF_THE_FIRST_VERSION}).kind is EntryKind.CREDIT


def test_an_older_worker_passes_over_a_field_that_a_newer_consumer_sends() -> None:
    assert from_wire({**to_wire(a_credit("1")), "campaign": {"name": "spring"}}) == a_credit("1")


def test_a_newer_worker_does_without_the_fields_that_an_older_consumer_does_not_send() -> None:
    sent = {name: value for name, value in to_wire(a_credit("1")).items() if name in FIELDS_OF_THE_FIRST_VERSION}
    assert from_wire(sent).order_id == "1"
    del sent["transaction_id"]
    assert from_wire(sent).transaction_id is None


def test_every_field_that_came_after_the_first_version_has_a_default() -> None:
    later = [field for field in fields(Credit) if field.name not in FIELDS_OF_THE_FIRST_VERSION]
    assert [field.name for field in later if field.default is MISSING and field.default_factory is MISSING] == []


@pytest.mark.parametrize(
    "change", [{"order_id": 7}, {"amount_cents": "100"}, {"amount_cents": 1.5}, {"customer": None}, {"kind": "gift"}]
)
def test_a_wrong_field_is_named(change: dict[str, object]) -> None:
    (name,) = change
    with pytest.raises(UnreadableCredit, match=name):
        from_wire({**to_wire(a_credit("1")), **change})


def test_a_task_with_fields_and_arguments_of_a_newer_version_is_worked_on(sqlite_url: str) -> None:
    open_database(sqlite_url, migrations=MIGRATIONS, start_timeout_s=10).dispose()
    app = in_memory()
    register_credit_task(app, sqlite_url, World())
    task = app.tasks["credit_service.credit_orders"]
    credits = [{**to_wire(a_credit("1")), "campaign": "spring"}]
    assert task(credits, trace_id="of a newer version") == ["CREDITED"]
    assert task(credits) == ["ALREADY_CREDITED"]
