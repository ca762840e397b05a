"""Tests that each payment gets its points, even in cases in which `on_commit` loses the message."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType

import django
import pytest
from django.core.management import call_command
from django.db import connections

from rocketmq_broker.client import ClientError
from rocketmq_broker.testing import SyncRocketMQ

PAYMENT = {"payment_id": "payment-1", "customer": "ada", "euros": 30}


@pytest.fixture(scope="module", autouse=True)
def _django(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tutorials.recipes.payment_points.settings"
    os.environ["POINTS_FOLDER"] = str(tmp_path_factory.mktemp("points"))
    django.setup()
    for database in ("default", "points"):
        call_command("migrate", run_syncdb=True, database=database, verbosity=0)
    yield
    connections.close_all()
    del os.environ["DJANGO_SETTINGS_MODULE"], os.environ["POINTS_FOLDER"]


@pytest.fixture
def paying(rocketmq: SyncRocketMQ) -> Iterator[ModuleType]:
    from tutorials.recipes.payment_points import paying

    rocketmq.producer("operators").create_topic(paying.TOPIC)
    rocketmq.consumer("points", paying.TOPIC, paying.give_points)
    yield paying
    for database in ("default", "points"):
        call_command("flush", database=database, interactive=False, verbosity=0)


def paid_and_given() -> tuple[int, int]:
    from tutorials.recipes.payment_points.models import Payment, Points

    return Payment.objects.count(), Points.objects.using("points").count()


def test_on_commit_loses_the_points_when_the_broker_is_away_for_a_moment(rocketmq: SyncRocketMQ, paying: ModuleType) -> None:
    producer = rocketmq.producer("payments", retry_times_when_send_failed=0)
    rocketmq.crash()
    with pytest.raises(ClientError):
        paying.pay_on_commit(PAYMENT, producer.send)
    rocketmq.restart()
    rocketmq.advance(minutes=2)
    assert paid_and_given() == (1, 0)


def test_a_lost_commit_is_settled_by_a_check_back_and_points_are_given_once(rocketmq: SyncRocketMQ, paying: ModuleType) -> None:
    producer = rocketmq.transaction_producer("payments", paying.PaymentListener())
    rocketmq.lose_next_decision()
    producer.send_message_in_transaction(paying.message_of(PAYMENT), PAYMENT)
    assert paid_and_given() == (1, 0)
    rocketmq.advance(minutes=2)
    assert paid_and_given() == (1, 1)
    rocketmq.producer("again").send(paying.message_of(PAYMENT))
    rocketmq.advance(minutes=1)
    assert paid_and_given() == (1, 1)


KILLED_AFTER_ITS_LOCAL_COMMIT = """
import os, signal
import django
django.setup()
from django.test import Client
from tutorials.recipes.payment_points import paying

class Listener(paying.PaymentListener):
    def execute_local_transaction(self, message, payment):
        super().execute_local_transaction(message, payment)
        os.kill(os.getpid(), signal.SIGKILL)

from tutorials.recipes.payment_points import views
views.PaymentListener = Listener
Client().put("/payments/payment-1", b'{"customer": "ada", "euros": 30}')
"""


def test_points_of_a_payment_stored_before_kill_9_are_given(rocketmq: SyncRocketMQ, paying: ModuleType) -> None:
    environment = {**os.environ, "NAMESRV_ADDR": rocketmq.namesrv_addr}
    killed = subprocess.run([sys.executable, "-c", KILLED_AFTER_ITS_LOCAL_COMMIT], env=environment, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert paid_and_given() == (1, 0)
    rocketmq.transaction_producer("payments", paying.PaymentListener())
    rocketmq.advance(minutes=2)
    assert paid_and_given() == (1, 1)
