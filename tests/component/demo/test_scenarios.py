"""Tests of the scenarios: the verdict's checks, and the rule that only one scenario runs at a time."""

import re
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Protocol, cast

import pytest

from demo.errors import DemoError
from demo.scenarios import runs
from demo.scenarios.context import ScenarioContext
from demo.scenarios.failpoints import FailpointFolder
from demo.scenarios.ledger import Ledgers
from demo.scenarios.plays import SCENARIOS
from demo.scenarios.questions import NO_ORDER_NO_CREDIT, ONE_ORDER_ONE_CREDIT, entries, one_order, points
from demo.scenarios.runs import Runs
from demo.scenarios.scenario import RunState, Scenario, ScenarioRun
from demo.system import System
from demo.up.keeper import Keeper
from rocketmq_broker.world import World
from service_runtime.failing.armed_failpoints import ArmedFailpoints


class Play(Protocol):
    def __call__(self, deed: Callable[[ScenarioContext], None], failpoint: str | None = None) -> ScenarioRun: ...


@pytest.fixture
def system(tmp_path: Path) -> System:
    """Returns a system with the databases of the order service and the credit service, without the services."""
    with closing(sqlite3.connect(tmp_path / "orders.db")) as orders:
        orders.execute("CREATE TABLE orders (order_id, customer, total_cents, created_at_ms, state, pay_until_ms)")
        orders.execute("CREATE TABLE transactions (transaction_id, order_id, state, created_at_ms, kind)")
        orders.executemany(
            "INSERT INTO orders VALUES (?, ?, 2599, 5, ?, ?)",
            [("o1", "ada", "PLACED", None), ("o2", "grace", "CANCELLED", None), ("o3", "eve", "AWAITING_PAYMENT", 99)],
        )
        orders.executemany(
            "INSERT INTO transactions VALUES (?, ?, ?, 5, ?)",
            [
                ("t1", "o1", "COMMITTED", "order"),
                ("t3", None, "ROLLED_BACK", "order"),
                ("t4", "o3", "PENDING", "order"),
                ("t5", "o2", "COMMITTED", "cancellation"),
            ],
        )
        orders.commit()
    with closing(sqlite3.connect(tmp_path / "credits.db")) as credits:
        credits.execute("CREATE TABLE credits (id, order_id, customer, points, transaction_id, created_at_ms)")
        rows = [(1, "o1", "ada", 25, "t1", 9), (2, "o2", "grace", 25, "t2", 9), (3, "o2", "grace", -25, "t2", 10)]
        credits.executemany("INSERT INTO credits VALUES (?, ?, ?, ?, ?, ?)", rows)
        credits.execute("CREATE TABLE rocketmq_inbox (consumer, message_key, status, received_at_ms, failed_at_ms, last_error)")
        waiting = [
            ("credit_service", "t6:1", "NEW", 7, None, None),
            ("credit_service", "t7:1", "PARKED", 7, 8, "IntegrityError: no"),
            ("credit_service.refusals", "t8:1", "NEW", 7, None, None),
        ]
        credits.executemany("INSERT INTO rocketmq_inbox VALUES (?, ?, ?, ?, ?, ?)", waiting)
        credits.commit()
    urls = {f"{name}_database_url": f"sqlite:///{tmp_path}/{name}s.db" for name in ("order", "credit")}
    return cast(System, SimpleNamespace(**urls))


def ledgers(system: System) -> Ledgers:
    return Ledgers(system.order_database_url, system.credit_database_url)


@pytest.mark.parametrize(
    ("customer", "questions", "is_right"),
    [
        ("ada", ONE_ORDER_ONE_CREDIT, True),
        ("ada", NO_ORDER_NO_CREDIT, False),
        ("nobody", NO_ORDER_NO_CREDIT, True),
        ("nobody", ONE_ORDER_ONE_CREDIT, False),
        ("grace", ONE_ORDER_ONE_CREDIT, False),
        ("grace", (one_order("CANCELLED"), entries(2), points(0)), True),
        ("ada", (one_order("PLACED"), entries(1), points(25)), True),
    ],
)
def test_the_verdict_is_the_databases(customer: str, questions: tuple[object, ...], is_right: bool, system: System) -> None:
    findings = ledgers(system).answer(questions, customer)  # type: ignore[arg-type]
    assert all(finding.is_right for finding in findings) is is_right


def test_both_databases_bear_witness_of_a_transaction(system: System) -> None:
    order, credit = ledgers(system).events("t1")
    assert (order.at_ms, order.on_record, credit.at_ms, credit.on_record) == (5, "order database", 9, "credit database")
    assert "order o1 of 25.99 for ada" in order.what
    (marker,) = ledgers(system).events("t3")
    assert "marker ROLLED_BACK" in marker.what
    _, unknown = ledgers(system).events("t4")
    assert "answers UNKNOWN: the order awaits its payment" in unknown.what
    (cancelled,) = ledgers(system).events("t5")
    assert cancelled.what == "local transaction: order o2 for grace is CANCELLED"
    assert ledgers(system).events("t9") == []


def test_a_message_in_the_inbox_is_a_step_and_so_is_its_failure(system: System) -> None:
    (waits,) = ledgers(system).events("t6")
    assert (waits.at_ms, waits.what) == (7, "the message waits in the inbox of the credit service")
    _, failed = ledgers(system).events("t7")
    assert (failed.at_ms, failed.what) == (8, "the credit failed: IntegrityError: no")
    assert failed.arrow is not None
    assert (failed.arrow.label, failed.arrow.is_lost) == ("PARKED", True)
    assert [ledgers(system).inbox_events(key) for key in ("t8", "t%", "")] == [[], [], []]


def test_a_database_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(DemoError, match="cannot read"):
        Ledgers(f"sqlite:///{tmp_path}/none.db", f"sqlite:///{tmp_path}/none.db").order_of("ada")


def test_every_scenario_says_what_to_watch_and_what_to_expect_and_asks_both_databases() -> None:
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)
    for scenario in SCENARIOS:
        assert re.fullmatch("[a-z-]+", scenario.name)
        assert all(text.endswith(".") for text in (scenario.what_happens, scenario.watch, scenario.expect))
        assert {question.database.value for question in scenario.verdict} == {"order database", "credit database"}
        assert all(":customer" in question.sql for question in scenario.verdict)


class TestRuns:
    @pytest.fixture
    def play(self, system: System, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
        """Returns a function that runs a scenario that must create no order, and waits until the scenario has ended."""
        failpoints = tmp_path / "failpoints"
        failpoints.mkdir()
        self.runs = Runs(system, cast(Keeper, SimpleNamespace(is_all_ready=True)), FailpointFolder(failpoints))

        def play(deed: Callable[[ScenarioContext], None], failpoint: str | None = None) -> ScenarioRun:
            scenario = Scenario("trial", "Trial", "It happens.", "Watch.", "Expect.", NO_ORDER_NO_CREDIT, deed, failpoint)
            monkeypatch.setattr(runs, "SCENARIOS", (scenario,))
            monkeypatch.setattr(runs, "_BEFORE_VERDICT_S", 0.0)
            run = self.runs.start("trial")
            self.runs.wait()
            return run

        return play

    def test_one_that_ends_as_expected_is_consistent(self, play: Play) -> None:
        run = play(lambda context: context.note("done"))
        assert (run.state, run.is_consistent, [step.what for step in run.steps]) == (RunState.ENDED, True, ["done"])

    def test_one_that_fails_says_why(self, play: Play) -> None:
        def fail(context: ScenarioContext) -> None:
            context.wait_until(lambda: False, "pigs fly", timeout_s=0)

        run = play(fail)
        assert (run.state, run.is_consistent, run.failure) == (
            RunState.FAILED,
            False,
            "timed out after 0 s, waiting for: pigs fly",
        )

    def test_a_failpoint_that_was_not_hit_is_disarmed_in_the_end(self, play: Play, tmp_path: Path) -> None:
        armed: list[str] = []

        def look(context: ScenarioContext) -> None:
            armed.append((tmp_path / "failpoints" / "lose-commit").read_text())

        run = play(look, "lose-commit")
        assert armed == [run.customer]
        assert not list((tmp_path / "failpoints").iterdir())

    def test_a_failpoint_that_is_hit_is_one_of_the_steps(self, play: Play, tmp_path: Path) -> None:
        def hit(context: ScenarioContext) -> None:
            context.note("POST /orders")
            assert ArmedFailpoints(tmp_path / "failpoints", World().wall_ms).is_hit(
                "lose-commit", context.run.customer.encode(), "T1"
            )

        run = play(hit, "lose-commit")
        armed, posted, is_hit = [step.what for step in self.runs.steps(run)]
        assert armed == f"failpoint lose-commit is armed for {run.customer}"
        assert (posted, is_hit) == ("POST /orders", "failpoint lose-commit is hit: COMMIT is not sent.")

    def test_a_fault_is_an_arrow_in_the_timeline_of_the_runs_transaction(self, play: Play) -> None:
        def lock(context: ScenarioContext) -> None:
            context.run.transaction_id, context.run.key = "T1", "order-17"
            with context.credit_database_away():
                context.note("an order is placed")

        run = play(lock)
        assert [event.arrow.label for event in self.runs.events("T1") if event.arrow is not None] == ["locked", "unlocked"]
        assert self.runs.events("T2") == []
        assert run.word == "order-17"

    def test_a_second_one_waits_its_turn(self, play: Play) -> None:
        refusals: list[str] = []

        def start_another(context: ScenarioContext) -> None:
            with pytest.raises(DemoError) as refused:
                self.runs.start("trial")
            refusals.append(str(refused.value))

        play(start_another)
        assert refusals == ["“Trial” is still running; wait until it has finished"]

    def test_one_that_runs_ends_with_make_up(self, play: Play) -> None:
        def stop(context: ScenarioContext) -> None:
            threading.Thread(target=self.runs.stop).start()
            context.pause(600)

        assert play(stop).failure == "`make up` was stopped"

    def test_no_scenario_begins_under_a_name_that_nobody_knows(self, play: Play) -> None:
        with pytest.raises(DemoError, match="unknown scenario nonsense"):
            self.runs.start("nonsense")
