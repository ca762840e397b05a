"""The application's screens in the console: start, processes, scenarios, failpoints, and second opinion."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from demo.errors import DemoError
from demo.scenarios.failpoints import FAILPOINTS, Failpoint
from demo.scenarios.plays import SCENARIOS
from demo.scenarios.runs import Runs
from demo.scenarios.scenario import Scenario, ScenarioRun, ScenarioStep
from demo.scenarios.service_logs import ServiceLogs
from demo.system import System
from demo.up.chapters import chapter_title, find_chapter
from demo.up.keeper import Health, Keeper
from demo.up.second_opinion import Opinion, SecondOpinion, SparkInstallation
from demo.up.shop import Shop
from rocketmq_broker.admin.console import Extension, FormAction, Screen, Section, TransactionFacts, Visit, find_transactions, url
from rocketmq_broker.admin.errors import AdminError, Refused
from rocketmq_broker.admin.timeline.event import Event

TEMPLATES: Final = Path(__file__).parent / "templates"


class ProcessRow(NamedTuple):
    """A process of the system."""

    name: str
    health: Health
    pid: int | None
    deaths: int
    log: str


class RunningFacts(NamedTuple):
    """The running processes and their addresses."""

    processes: list[ProcessRow]
    addresses: Mapping[str, str]
    namesrv_addr: str


class ScenariosFacts(NamedTuple):
    """The scenarios, and the runs so far."""

    scenarios: tuple[Scenario, ...]
    runs: list[ScenarioRun]
    running: ScenarioRun | None
    is_ready: bool


class FailpointRow(NamedTuple):
    """A failpoint and its current state."""

    failpoint: Failpoint
    is_armed: bool
    meant_for: str
    """The customer for whose message the failpoint is armed. Empty for any customer."""
    hits: int
    scenarios: list[Scenario]
    """The scenarios that use the failpoint."""


class OpinionFacts(NamedTuple):
    """The content of the screen Second opinion: the result of Spark's comparison of all orders."""

    opinion: Opinion | None
    """The latest comparison. None before the first one."""
    spark: SparkInstallation


class RunFacts(NamedTuple):
    """A run, with the timelines of its transactions."""

    run: ScenarioRun
    steps: list[ScenarioStep]
    transactions: list[TransactionFacts]
    trouble: str | None


def extension(
    system: System, keeper: Keeper, runs: Runs, second_opinion: SecondOpinion, addresses: Mapping[str, str]
) -> Extension:
    """Returns the application's extension of the console."""
    application, shop = _Application(system, keeper, runs, second_opinion, addresses), Shop(system, keeper, runs, addresses)
    return Extension(
        sections=(
            Section("Start", "/"),
            Section("What runs", "/running"),
            Section("Scenarios", "/scenarios"),
            Section("Failpoints", "/failpoints"),
            Section("Second opinion", "/second-opinion"),
        ),
        screens=(
            Screen("/", "Start", "start.html", shop.find, refresh_s=1.0, heading=lambda visit: "One order, one credit"),
            Screen("/chapter", "Chapter", "chapter.html", find_chapter, refresh_s=None, heading=chapter_title),
            Screen("/running", "What runs", "running.html", application.find_running),
            Screen("/scenarios", "Scenarios", "scenarios.html", application.find_scenarios),
            Screen("/scenarios/run", "Scenario", "run.html", application.find_run, refresh_s=0.5, heading=application.heading),
            Screen("/failpoints", "Failpoints", "failpoints.html", application.find_failpoints),
            Screen("/second-opinion", "Second opinion", "second_opinion.html", application.find_opinion),
        ),
        actions=(
            FormAction("/orders/place", shop.place, shop.after_order, form_at=lambda visit: "/"),
            FormAction("/orders/pay", shop.pay, shop.after_order),
            FormAction(
                "/scenarios/start", application.start, application.newest_run, shows_result=False, form_at=_form_of_scenarios
            ),
            FormAction("/failpoints/arm", application.arm, lambda visit: "/failpoints"),
            FormAction("/failpoints/disarm", application.disarm, lambda visit: "/failpoints"),
            FormAction("/second-opinion/ask", application.ask_spark, lambda visit: "/second-opinion"),
        ),
        templates=TEMPLATES,
        witnesses=(application.witness,),
        finders=(shop.search,),
    )


def _form_of_scenarios(visit: Visit) -> str:
    return "/" if visit.word("from") == "start" else "/scenarios"


class _Application:
    def __init__(
        self, system: System, keeper: Keeper, runs: Runs, second_opinion: SecondOpinion, addresses: Mapping[str, str]
    ) -> None:
        self._system = system
        self._keeper = keeper
        self._runs = runs
        self._second_opinion = second_opinion
        self._addresses = addresses
        self._logs = ServiceLogs({one.name: one.log_path for one in system.consumers if one.log_path is not None})

    async def find_running(self, visit: Visit) -> RunningFacts:
        """Returns the processes and the addresses."""
        pids, processes = self._keeper.pids, (self._system.broker, *self._system.services)
        rows = [
            ProcessRow(
                process.name,
                self._keeper.healths[process.name],
                pids.get(process.name),
                len(self._keeper.deaths_ms[process.name]),
                str(process.log_path or ""),
            )
            for process in processes
        ]
        return RunningFacts(rows, self._addresses, self._system.namesrv_addr)

    async def find_scenarios(self, visit: Visit) -> ScenariosFacts:
        """Returns the scenarios and the runs."""
        return ScenariosFacts(SCENARIOS, self._runs.all()[::-1], self._runs.running, self._keeper.is_all_ready)

    async def find_run(self, visit: Visit) -> RunFacts:
        """Returns a run. Raises Refused if there is no run with this number."""
        run = self._run(visit)
        steps = self._runs.steps(run)
        if run.word is None:
            return RunFacts(run, steps, [], None)
        try:
            return RunFacts(run, steps, await find_transactions(visit, run.word, [self.witness]), None)
        except AdminError as error:
            health = self._keeper.healths[self._system.broker.name]  # Some scenarios kill the broker.
            return RunFacts(run, steps, [], str(error) if health is Health.READY else f"the broker is not ready: {health.value}")

    def heading(self, visit: Visit) -> str:
        """Returns the scenario's title."""
        return self._run(visit).scenario.title

    async def start(self, visit: Visit) -> str:
        """Starts a scenario. Raises Refused if it cannot start now."""
        try:
            run = self._runs.start(visit.word("scenario"))
        except DemoError as error:
            raise Refused(str(error)) from None
        return f"run {run.number} has started: {run.scenario.title}"

    async def find_failpoints(self, visit: Visit) -> list[FailpointRow]:
        """Returns the failpoints with their states."""
        armed, hits = self._runs.failpoints.armed(), [hit.failpoint for hit in self._runs.failpoints.hits()]
        return [
            FailpointRow(
                one,
                one.name in armed,
                armed.get(one.name, ""),
                hits.count(one.name),
                [scenario for scenario in SCENARIOS if scenario.failpoint == one.name],
            )
            for one in FAILPOINTS
        ]

    async def arm(self, visit: Visit) -> str:
        """Arms a failpoint for a customer, or for any customer. Raises Refused if it cannot be armed."""
        name, meant_for = visit.word("failpoint"), visit.word("meant_for")
        try:
            self._runs.failpoints.arm(name, meant_for)
        except DemoError as error:
            raise Refused(str(error)) from None
        return f"failpoint {name} is armed for {meant_for or 'the next message of anybody'}"

    async def disarm(self, visit: Visit) -> str:
        """Disarms a failpoint. Raises Refused if it does not exist."""
        name = visit.word("failpoint")
        try:
            self._runs.failpoints.disarm(name)
        except DemoError as error:
            raise Refused(str(error)) from None
        return f"failpoint {name} is armed no more"

    async def find_opinion(self, visit: Visit) -> OpinionFacts:
        """Returns the result of Spark's latest comparison."""
        return OpinionFacts(self._second_opinion.latest(), self._second_opinion.spark)

    async def ask_spark(self, visit: Visit) -> str:
        """Starts a comparison. If Spark's installation has failed, starts the installation again.

        Raises Refused if a comparison is running.
        """
        if self._second_opinion.spark.has_failed:
            self._second_opinion.spark.begin()
            return "Spark is being installed again"
        try:
            self._second_opinion.ask()
        except DemoError as error:
            raise Refused(str(error)) from None
        return "Spark has begun to compare"

    def newest_run(self, visit: Visit) -> str:
        """Returns the URL of the latest run."""
        return url("/scenarios/run", number=self._runs.all()[-1].number)

    async def witness(self, transaction_id: str, keys: list[str]) -> list[Event]:
        """Returns the events of a transaction from both databases, from its scenario run, from failpoints and from logs."""
        try:
            of_databases = await asyncio.to_thread(self._runs.ledgers.events, transaction_id)
        except DemoError:
            of_databases = []
        of_logs = await asyncio.to_thread(self._logs.events, transaction_id)
        return [*of_databases, *self._runs.events(transaction_id), *of_logs]

    def _run(self, visit: Visit) -> ScenarioRun:
        run = self._runs.find(visit.number("number", 0))
        if run is None:
            raise Refused("this run does not exist or is no longer stored")
        return run
