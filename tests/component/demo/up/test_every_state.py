"""Tests that the pages of `make up` can be rendered in each state and both languages. A missing value makes a template fail."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.testclient import TestClient

from demo.scenarios.failpoints import FAILPOINTS, FailpointFolder
from demo.scenarios.plays import SCENARIOS
from demo.scenarios.questions import Question, ScenarioFinding
from demo.scenarios.runs import Runs
from demo.scenarios.scenario import RunState, ScenarioRun
from demo.system import System
from demo.up.keeper import Health, Keeper
from demo.up.screens import extension
from demo.up.second_opinion import Opinion, SecondOpinion
from pipelines.judging.classes import CAUSES, MEANINGS
from rocketmq_broker.admin.console import ConsoleSettings, create_console
from rocketmq_broker.admin.session import Target
from rocketmq_broker.admin.timeline.event import BROKER, Arrow
from rocketmq_broker.client import Message
from rocketmq_broker.testing import SyncRocketMQ
from tests.unit.admin.console.visitor import PAGE_OF_CONSOLE, Visitor
from tests.unit.testing.listeners import Transactions

LANGUAGES = pytest.mark.parametrize("language", ["en", "zh"])
ADDRESSES = {"order service": "http://127.0.0.1:8080", "credit service": "http://127.0.0.1:8081", "name server": "127.0.0.1:9876"}
PROCESSES = [SimpleNamespace(name=f"process of {health.value}", log_path=None) for health in Health]


class Up:
    """The parts of `make up` that the pages show. A test sets their state."""

    def __init__(self, folder: Path, rocketmq: SyncRocketMQ) -> None:
        urls = {"order_database_url": f"sqlite:///{folder}/orders.db", "credit_database_url": f"sqlite:///{folder}/credits.db"}
        broker, *services = PROCESSES
        self.system = SimpleNamespace(
            **urls, consumers=(), broker=broker, services=services, namesrv_addr=rocketmq.namesrv_addr, order_url=""
        )
        self.keeper = SimpleNamespace(
            is_all_ready=True,
            healths={one.name: Health.READY for one in PROCESSES},
            pids={broker.name: 4711},
            deaths_ms={one.name: [1, 2] if one is broker else [] for one in PROCESSES},
        )
        self.failpoints = FailpointFolder(folder)
        self.runs = Runs(cast(System, self.system), cast(Keeper, self.keeper), self.failpoints)
        self.opinion: Opinion | None = None
        self.spark = SimpleNamespace(is_complete=True, has_failed=False, last_line="")
        self.second_opinion = SimpleNamespace(spark=self.spark, latest=lambda: self.opinion)

    def play(self, **state: Any) -> ScenarioRun:
        run = ScenarioRun(1, SCENARIOS[0], "customer-1")
        for name, value in state.items():
            setattr(run, name, value)
        self.runs._runs = [run]
        return run


@pytest.fixture
def up(tmp_path: Path, rocketmq: SyncRocketMQ) -> Up:
    return Up(tmp_path, rocketmq)


@pytest.fixture
def visitor(up: Up, rocketmq: SyncRocketMQ) -> Iterator[Visitor]:
    added = extension(
        cast(System, up.system), cast(Keeper, up.keeper), up.runs, cast(SecondOpinion, up.second_opinion), ADDRESSES
    )
    app = create_console(ConsoleSettings(), Target(namesrv_addr=rocketmq.namesrv_addr), added)
    with TestClient(app, base_url=PAGE_OF_CONSOLE) as client:
        yield Visitor(client)


def findings(*, is_right: bool) -> list[ScenarioFinding]:
    questions: tuple[Question, ...] = SCENARIOS[0].verdict
    return [ScenarioFinding(one, one.expected if is_right else one.expected + 1) for one in questions]


RUNS: Mapping[str, tuple[Callable[[], dict[str, Any]], str]] = {
    "running": (dict, "running"),
    "as expected": (lambda: {"state": RunState.ENDED, "findings": findings(is_right=True)}, "as expected"),
    "wrong": (lambda: {"state": RunState.ENDED, "findings": findings(is_right=False)}, "not as expected"),
    "failed": (lambda: {"state": RunState.FAILED, "failure": "the broker did not start <again>"}, "did not start &lt;again&gt;"),
    "unknown transaction": (lambda: {"transaction_id": "T1"}, "running"),
}


@LANGUAGES
@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_shown_in_each_state(name: str, language: str, up: Up, visitor: Visitor) -> None:
    state, words = RUNS[name]
    run = up.play(**state())
    run.note("the broker is killed", Arrow(BROKER, BROKER, "killed"))
    html = visitor.html(f"/scenarios/run?number=1&lang={language}")
    assert words in html or language == "zh"
    assert html.count("<h2>Verdict</h2>" if language == "en" else "<h2>判定</h2>") == bool(run.findings)
    assert 'href="/scenarios/run?number=1"' in visitor.html(f"/scenarios?lang={language}")
    assert visitor.html(f"/?lang={language}").count(" disabled>") == (len(SCENARIOS) if run.state is RunState.RUNNING else 0)


@LANGUAGES
def test_a_run_is_shown_with_its_transaction_and_while_its_broker_is_away(
    language: str, up: Up, visitor: Visitor, rocketmq: SyncRocketMQ
) -> None:
    producer = rocketmq.transaction_producer("shops", Transactions())
    sent = producer.send_message_in_transaction(Message.of("orders", b"paid", keys=["order-1"]))
    up.play(transaction_id=sent.transaction_id, key="order-1").note("it is killed", Arrow(BROKER, BROKER, "killed"))
    page = f"/scenarios/run?number=1&lang={language}"
    assert "<svg" in visitor.html(page)
    rocketmq.crash()
    up.keeper.healths[up.system.broker.name] = Health.DOWN
    assert 'role="alert"' in visitor.html(page)
    assert "No timeline at the moment: the broker is not ready: down" in visitor.sees("/scenarios/run?number=1&lang=en")
    visitor.html("/scenarios/run?number=2", 404)


@LANGUAGES
@pytest.mark.parametrize("is_ready", [True, False])
def test_scenarios_and_what_runs_are_shown_before_all_is_ready(is_ready: bool, language: str, up: Up, visitor: Visitor) -> None:
    up.keeper.is_all_ready = is_ready
    if not is_ready:
        up.keeper.healths = {one.name: health for one, health in zip(PROCESSES, Health, strict=True)}
    for page in (f"/scenarios?lang={language}", f"/?lang={language}"):
        assert visitor.html(page).count(" disabled>") == (0 if is_ready else len(SCENARIOS))
    running = visitor.html(f"/running?lang={language}")
    assert all(process.name in running for process in PROCESSES)
    assert "4711" in running


@LANGUAGES
def test_failpoints_are_shown_armed_and_hit(language: str, up: Up, visitor: Visitor) -> None:
    first, second, *others = [one.name for one in FAILPOINTS]
    up.failpoints.arm(first, "ada")
    up.failpoints.arm(second, "")
    html = visitor.html(f"/failpoints?lang={language}")
    assert [f'id="disarm-{name}"' in html for name in (first, second, *others)] == [True, True, *[False] * len(others)]
    assert "ada" in html


def verdict(*, is_consistent: bool) -> str:
    """Returns a verdict with each class and each cause, with amounts in two currencies and without amounts."""
    money = [{"currency": "EUR", "order_cents": 2599, "credit_cents": 0}, {"currency": None, "order_cents": 1, "credit_cents": 2}]
    kinds = [
        {
            "finding": finding,
            "count": 1234,
            "money": money,
            "meaning": meaning,
            "causes": dict.fromkeys(CAUSES, 2),
            "order_ids": ["order-1"],
            "fails": not is_consistent,
        }
        for finding, meaning in MEANINGS.items()
    ]
    return json.dumps(
        {"is_consistent": is_consistent, "orders": 5000, "credits": 1, "as_of_ms": 1, "grace_seconds": 10, "findings": kinds}
    )


OPINIONS = {
    "asked first": (None, None),
    "compares": (Opinion(3.0, True, ("Comparing",)), "said"),
    "agree": (Opinion(3.0, False, (verdict(is_consistent=True),)), "well"),
    "differ": (Opinion(3.0, False, (verdict(is_consistent=False),)), "trouble"),
    "could not tell": (Opinion(3.0, False, ("could not tell: <away>",)), "trouble"),
    "killed": (Opinion(3.0, False, ()), "trouble"),
}


@LANGUAGES
@pytest.mark.parametrize("name", OPINIONS)
def test_the_second_opinion_is_shown_in_each_state(name: str, language: str, up: Up, visitor: Visitor) -> None:
    up.opinion, kind = OPINIONS[name]
    html = visitor.html(f"/second-opinion?lang={language}")
    assert (f'<p class="{kind}" role="status">' in html) is (kind is not None)
    assert html.count(">1,234<") == (len(MEANINGS) if name in ("agree", "differ") else 0)
