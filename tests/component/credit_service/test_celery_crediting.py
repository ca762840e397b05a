"""One task for one batch: sent, waited for, forgotten; never piled up."""

from collections.abc import Sequence

import pytest
from celery import Celery

from credit_service.adapters.celery_app import QUEUE, create_celery
from credit_service.adapters.celery_crediting import MAX_WAITING_TASKS, CeleryCrediting
from credit_service.adapters.celery_tasks import CeleryTasks, Task, TaskAnswer
from credit_service.adapters.credit_wire import WireCredit, to_wire
from credit_service.adapters.ledger import Ledger
from credit_service.domain.credit import Credit, CreditOutcome
from credit_service.service_layer.crediting import CreditingFailed, CreditingUnavailable
from rocketmq_broker.world import World
from tests.component.credit_service.conftest import a_credit
from tests.unit.credit_service.credit_side import CreditSide

TIMEOUT_S = 10.0


@pytest.fixture
def side(sqlite_ledger: Ledger) -> CreditSide:
    return CreditSide(sqlite_ledger)


@pytest.fixture
def crediting(side: CreditSide) -> CeleryCrediting:
    return CeleryCrediting(side, World(steady_ns=lambda: int(side.clock() * 1e9)), timeout_s=TIMEOUT_S)


def credit(crediting: CeleryCrediting, credits: Sequence[Credit], *, is_again: bool = False) -> list[CreditOutcome | None]:
    return crediting.credit(credits, is_again=is_again, is_given_up=lambda: False)


def test_an_answer_that_was_read_is_forgotten(side: CreditSide, crediting: CeleryCrediting) -> None:
    assert credit(crediting, [a_credit("1"), a_credit("2")]) == [CreditOutcome.CREDITED] * 2
    assert side.answers == {}
    side.poison = lambda _: KeyError("points")
    with pytest.raises(CreditingFailed, match=r"KeyError: 'points'"):
        credit(crediting, [a_credit("3")])
    assert side.answers == {}


def test_a_batch_is_not_sent_a_second_time_while_its_task_waits(side: CreditSide, crediting: CeleryCrediting) -> None:
    side.are_workers_up = lambda: False
    for attempt in range(100):
        with pytest.raises(CreditingUnavailable, match="no answer from a worker after 10 s"):
            credit(crediting, [a_credit("1")], is_again=attempt > 0)
    assert (side.sent, side.most_waiting) == (1, 1)
    assert side.clock() == pytest.approx(100 * TIMEOUT_S)
    side.are_workers_up = lambda: True
    assert credit(crediting, [a_credit("1")], is_again=True) == [CreditOutcome.CREDITED]
    assert side.sent == 1


def test_a_batch_whose_task_redis_has_lost_is_sent_again(side: CreditSide, crediting: CeleryCrediting) -> None:
    side.are_workers_up = lambda: False
    with pytest.raises(CreditingUnavailable):
        credit(crediting, [a_credit("1")])
    side.lose_everything()
    side.are_workers_up = lambda: True
    assert credit(crediting, [a_credit("1")], is_again=True) == [CreditOutcome.CREDITED]


def test_a_batch_whose_task_was_done_while_nobody_waited_is_credited_once(side: CreditSide, crediting: CeleryCrediting) -> None:
    side.are_workers_up = lambda: False
    with pytest.raises(CreditingUnavailable):
        credit(crediting, [a_credit("1")])
    side.are_workers_up = lambda: True
    side.work()
    assert credit(crediting, [a_credit("1")], is_again=True) == [CreditOutcome.ALREADY_CREDITED]


def test_consumers_that_start_over_and_over_do_not_fill_redis(side: CreditSide, crediting: CeleryCrediting) -> None:
    side.are_workers_up = lambda: False
    for number in range(MAX_WAITING_TASKS + 50):
        with pytest.raises(CreditingUnavailable):
            credit(crediting, [a_credit(str(number))])
    assert side.most_waiting == MAX_WAITING_TASKS
    with pytest.raises(CreditingUnavailable, match="1000 tasks are already waiting in Redis: no worker takes them"):
        credit(crediting, [a_credit("one more")])


def test_a_redis_that_is_away_is_an_outage_when_sending_and_when_waiting(side: CreditSide, crediting: CeleryCrediting) -> None:
    side.is_redis_up = lambda: False
    with pytest.raises(CreditingUnavailable, match="the task could not be sent: ConnectionError: connection refused"):
        credit(crediting, [a_credit("1")])
    side.are_workers_up = lambda: False
    side.is_redis_up = lambda: side.clock() < 3
    with pytest.raises(CreditingUnavailable, match="the worker's answer could not be read from Redis"):
        credit(crediting, [a_credit("1")])


def test_a_database_that_is_away_is_an_outage(side: CreditSide, crediting: CeleryCrediting) -> None:
    side.is_database_up = lambda: False
    with pytest.raises(CreditingUnavailable, match="the database is gone"):
        credit(crediting, [a_credit("1")])


def test_an_answer_that_celery_has_kept_a_copy_of_is_not_taken_for_that_of_a_later_try(sqlite_ledger: Ledger) -> None:
    """Celery's results may come twice, by the key and by the subscription, and it buffers what nobody waits for."""

    class KeepsAnswers(CreditSide):
        def answer_again(self) -> None:
            self.answers |= {task_id: TaskAnswer(["IMPOSSIBLE"]) for task_id in self.ids}

        def send(self, task_id: str, credits: Sequence[WireCredit]) -> Task:
            self.ids.append(task_id)
            return super().send(task_id, credits)

        ids: list[str] = []

    side = KeepsAnswers(sqlite_ledger)
    crediting = CeleryCrediting(side, World(steady_ns=lambda: int(side.clock() * 1e9)), timeout_s=TIMEOUT_S)
    assert credit(crediting, [a_credit("1")]) == [CreditOutcome.CREDITED]
    side.answer_again()
    assert credit(crediting, [a_credit("1")]) == [CreditOutcome.ALREADY_CREDITED]


def test_a_wait_ends_soon_when_it_is_given_up(side: CreditSide, crediting: CeleryCrediting) -> None:
    side.are_workers_up = lambda: False
    with pytest.raises(CreditingUnavailable):
        crediting.credit([a_credit("1")], is_again=False, is_given_up=lambda: side.clock() >= 2)
    assert side.clock() == pytest.approx(2)


def test_an_outcome_that_only_a_newer_worker_knows_is_told_as_none(side: CreditSide, crediting: CeleryCrediting) -> None:
    side.are_workers_up = lambda: False
    with pytest.raises(CreditingUnavailable):
        credit(crediting, [a_credit("1"), a_credit("2")])
    task_id = side._queue[0][0]
    side.answers[task_id] = TaskAnswer(["CREDITED", "CREDITED_WITH_A_BONUS"])
    assert credit(crediting, [a_credit("1"), a_credit("2")], is_again=True) == [CreditOutcome.CREDITED, None]


@pytest.mark.parametrize("value", [None, "CREDITED", [], ["CREDITED"], {"outcomes": ["CREDITED", "CREDITED"]}])
def test_an_answer_of_another_shape_credits_nothing(side: CreditSide, crediting: CeleryCrediting, value: object) -> None:
    side.are_workers_up = lambda: False
    with pytest.raises(CreditingUnavailable):
        credit(crediting, [a_credit("1"), a_credit("2")])
    side.answers[side._queue[0][0]] = TaskAnswer(value)
    with pytest.raises(CreditingFailed, match="2 orders answered"):
        credit(crediting, [a_credit("1"), a_credit("2")], is_again=True)


def in_memory() -> Celery:
    celery = create_celery("redis://127.0.0.1:1/0")
    celery.conf.update(
        broker_url="memory://", broker_transport=None, result_backend="cache+memory://", broker_transport_options={}
    )
    return celery


def test_a_task_on_its_way_does_not_expire_by_anybodys_clock() -> None:
    celery = in_memory()
    CeleryTasks(celery, "redis://127.0.0.1:1/0").send("task-1", [to_wire(a_credit("1"))])
    with celery.connection_for_read() as connection:
        (message,) = [connection.default_channel.basic_get(QUEUE)]
    assert (message.headers["id"], message.headers["expires"], message.headers["eta"]) == ("task-1", None, None)
