"""A Django program that runs the tests named in its arguments. The variable DATABASE names an empty database."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlsplit

import django
from django.conf import settings
from django.core.management import call_command

from rocketmq_broker.client import LocalTransactionState
from rocketmq_broker.databases import DecidedBefore, LocalOutcome
from rocketmq_broker.databases.django import Inbox, barrier, conclude, once, settle
from rocketmq_broker.databases.inbox import InboxMessage, ParkMessage
from rocketmq_broker.message import Message
from rocketmq_broker.message.properties import UNIQUE_KEY
from rocketmq_broker.world import World
from tests.component.databases.conftest import DELIVERED, HALF

URL = urlsplit(os.environ["DATABASE"])
if URL.scheme == "sqlite":
    DATABASE = {"ENGINE": "django.db.backends.sqlite3", "NAME": URL.path[1:]}
else:
    PLACE = {"NAME": URL.path[1:], "USER": URL.username, "HOST": URL.hostname, "PORT": URL.port}
    DATABASE = {"ENGINE": "django.db.backends.postgresql", **PLACE}
settings.configure(
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "rocketmq_broker.databases.django"],
    DATABASES={"default": DATABASE},
    USE_TZ=True,
)
django.setup()

from django.contrib.auth.models import Group, Permission  # noqa: E402
from django.db import IntegrityError, transaction  # noqa: E402


def work_behind_the_barrier_is_committed_with_its_row() -> None:
    with barrier(HALF):
        Group.objects.create(name="order-1")
    assert Group.objects.count() == 1
    assert settle(HALF) is LocalTransactionState.COMMIT_MESSAGE


def work_that_raises_leaves_nothing_and_is_rolled_back_for_good() -> None:
    raises(ZeroDivisionError, fail)
    assert Group.objects.count() == 0
    assert settle(HALF) is LocalTransactionState.ROLLBACK_MESSAGE
    raises(DecidedBefore, fail)


def fail() -> None:
    with barrier(HALF):
        Group.objects.create(name="order-1")
        raise ZeroDivisionError


def a_pending_transaction_is_unknown_until_it_is_concluded_once() -> None:
    with barrier(HALF, LocalOutcome.PENDING):
        Group.objects.create(name="order-1")
    assert settle(HALF) is LocalTransactionState.UNKNOWN
    assert conclude(HALF.transaction_id, LocalOutcome.COMMITTED)
    assert not conclude(HALF.transaction_id, LocalOutcome.ROLLED_BACK)
    assert settle(HALF) is LocalTransactionState.COMMIT_MESSAGE


def a_message_that_comes_twice_is_consumed_once_by_each_consumer() -> None:
    for consumer in ("credits", "credits", "stock"):
        with once(DELIVERED, consumer) as is_first:
            if is_first:
                Group.objects.create(name=consumer)
    assert Group.objects.count() == 2


def messages_wait_in_the_inbox_and_one_that_fails_delays_nobody() -> None:
    def place(_using: str, messages: Sequence[InboxMessage]) -> None:
        for message in messages:
            Group.objects.create(name=message.text)
            if message.text == "bad" and is_bad:
                raise ValueError("the order is refused")

    now = [1_800_000_000]
    inbox, is_bad = Inbox("credits", world=World(wall_ns=lambda: now[0] * 10**9)), True
    orders = [DELIVERED.with_properties({UNIQUE_KEY: order}) for order in ("one", "two", "bad")]
    inbox.put([replace(message, body=str(message.transaction_id).encode()) for message in orders])
    inbox.put([orders[0]])
    assert (inbox.state().new, inbox.state().oldest_received_at_ms) == (3, now[0] * 1000)
    result = inbox.drain(place, once=True)
    assert (result.handled, result.failed) == (2, 1)
    assert (inbox.state().failed, inbox.state().last_error) == (1, "ValueError: the order is refused")
    assert sorted(Group.objects.values_list("name", flat=True)) == ["one", "two"]
    now[0], is_bad = now[0] + 1, False
    assert inbox.is_due()
    assert inbox.drain(place, once=True).handled == 1
    inbox.put(orders)
    assert inbox.drain(place, once=True).handled == 3
    assert Group.objects.count() == 3


def the_inbox_parks_and_retries_and_takes_messages_of_a_transaction() -> None:
    def park(_using: str, _messages: Sequence[InboxMessage]) -> None:
        raise ParkMessage("the amount differs")

    inbox = Inbox("credits")
    with transaction.atomic():
        inbox.put_in([Message.of("shortages", "order 1")])
    assert inbox.drain(park).parked == 1
    (parked,) = inbox.parked()
    assert (parked.text, inbox.retry([parked.key])) == ("order 1", 1)
    assert inbox.drain(lambda _using, _messages: None, max_batches=1).handled == 1
    assert inbox.state().waiting == 0


def messages_of_an_outbox_are_removed_when_they_are_done_and_parked_ones_are_dismissed() -> None:
    inbox = Inbox("credits")
    inbox.put([Message.of("shortages", "1"), Message.of("shortages", "2")])
    first, second = inbox.due()
    assert ([row.text for row in inbox.due(1)], inbox.done([first.key]), inbox.done([first.key])) == ([first.text], 1, 0)
    assert inbox.drain(refuse, max_tries=0).parked == 1
    assert (inbox.dismiss([second.key]), inbox.dismiss([second.key]), inbox.retry()) == (1, 0, 0)
    assert (inbox.state().parked, inbox.state().waiting, inbox.is_due(), inbox.due()) == (0, 0, False, [])


def a_message_that_kills_its_process_is_recorded_before_it_is_tried_alone() -> None:
    class Killed(BaseException):
        pass

    def die(_using: str, messages: Sequence[InboxMessage]) -> None:
        Group.objects.bulk_create(Group(name=message.text) for message in messages)
        if any(message.text == "bad" for message in messages):
            raise Killed

    now = [1_800_000_000]
    inbox = Inbox("credits", world=World(wall_ns=lambda: now[0] * 10**9))
    orders = [replace(DELIVERED, body=order.encode(), offset_message_id=order) for order in ("bad", "one", "two")]
    assert inbox.key_of(orders[0]) == "A" * 32 + ":bad"
    inbox.put(orders)
    raises(Killed, lambda: inbox.drain(die))
    assert (inbox.state().new, Group.objects.count()) == (3, 0)
    raises(Killed, lambda: inbox.drain(die, one_by_one=True))
    state = inbox.state()
    assert (state.failed, state.suspected, state.last_error) == (
        1, 0, "ProcessEnded: the process ended while it processed this message",
    )  # fmt: skip
    inbox.drain(die)
    assert sorted(Group.objects.values_list("name", flat=True)) == ["one", "two"]
    now[0] += 60
    raises(Killed, lambda: inbox.drain(die))
    assert inbox.state().failed == 1


def refuse(_using: str, _messages: Sequence[InboxMessage]) -> None:
    raise ValueError("the order is refused")


def a_barrier_inside_another_transaction_is_refused() -> None:
    with transaction.atomic():
        raises(RuntimeError, fail)


def another_violated_constraint_is_no_duplicate() -> None:
    def write() -> None:
        with once(DELIVERED, "credits"):
            Permission.objects.create(name="x", content_type_id=None, codename="x")

    raises(IntegrityError, write)
    with once(DELIVERED, "credits") as is_first:
        assert is_first


def the_models_need_no_further_migration() -> None:
    call_command("makemigrations", "rocketmq", "--check", "--dry-run", verbosity=0)


def raises(kind: type[BaseException], play: object) -> None:
    try:
        play()
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was not raised")


call_command("migrate", verbosity=0)
for play in sys.argv[1:]:
    globals()[play]()
    call_command("flush", interactive=False, verbosity=0)
