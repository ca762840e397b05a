"""Runs scenarios, one at a time, each in a thread."""

import threading
import uuid

from demo.errors import DemoError
from demo.scenarios.context import ScenarioContext
from demo.scenarios.failpoints import FailpointFolder, find
from demo.scenarios.ledger import Ledgers
from demo.scenarios.plays import SCENARIOS
from demo.scenarios.scenario import RunState, ScenarioRun, ScenarioStep
from demo.system import System
from demo.up.keeper import Keeper
from rocketmq_broker.admin.timeline.event import Event

_END_WITHIN_S = 10
_BEFORE_VERDICT_S = 1.0
"""The pause in seconds before the databases are checked. A redelivery that doubles a credit would arrive during this pause."""
MAX_RUNS = 50
"""The maximum number of runs that are kept. Older runs are deleted."""


class Runs:
    """The runs of scenarios, newest last."""

    def __init__(self, system: System, keeper: Keeper, failpoints: FailpointFolder) -> None:
        """Creates an empty list of runs. `failpoints` is the folder that the system's processes read."""
        self.ledgers = Ledgers(system.order_database_url, system.credit_database_url)
        self._system = system
        self._keeper = keeper
        self.failpoints = failpoints
        self._runs: list[ScenarioRun] = []
        self._count = 0
        self._leaving = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def all(self) -> list[ScenarioRun]:
        """Returns all kept runs."""
        return list(self._runs)

    @property
    def running(self) -> ScenarioRun | None:
        """The current run, or None."""
        return next((run for run in self._runs if run.state is RunState.RUNNING), None)

    def find(self, number: int) -> ScenarioRun | None:
        """Returns the run with this number, or None."""
        return next((run for run in self._runs if run.number == number), None)

    def start(self, name: str) -> ScenarioRun:
        """Starts a scenario. Raises DemoError if the scenario does not exist, or if another scenario is running."""
        scenario = next((one for one in SCENARIOS if one.name == name), None)
        if scenario is None:
            raise DemoError(f"unknown scenario {name}")
        with self._lock:
            if (running := self.running) is not None:
                raise DemoError(f"“{running.scenario.title}” is still running; wait until it has finished")
            if not self._keeper.is_all_ready:
                raise DemoError("the services are not ready yet; try again in a moment")
            self._count += 1
            run = ScenarioRun(self._count, scenario, f"{scenario.name}-{uuid.uuid4().hex[:8]}")
            self._runs = [*self._runs, run][-MAX_RUNS:]
            self._thread = threading.Thread(target=self._play, args=(run,), name=f"scenario {run.number}", daemon=True)
            self._thread.start()
        return run

    def steps(self, run: ScenarioRun) -> list[ScenarioStep]:
        """Returns the steps of a run, including the failpoints that were hit."""
        hits = [hit for hit in self.failpoints.hits() if hit.meant_for == run.customer]
        seen = [ScenarioStep(hit.at_ms, f"failpoint {hit.failpoint} is hit: {find(hit.failpoint).what}") for hit in hits]
        return sorted([*run.steps, *seen], key=lambda step: step.at_ms)

    def events(self, transaction_id: str) -> list[Event]:
        """Returns the faults of the transaction's run, and the failpoints that were hit, as events for a timeline."""
        of_runs = [event for run in self._runs if run.transaction_id == transaction_id for event in run.events]
        return [*of_runs, *self.failpoints.events(transaction_id)]

    def stop(self) -> None:
        """Stops the current run."""
        self._leaving.set()
        self.wait()

    def wait(self) -> None:
        """Waits a limited time for the current run to end."""
        if self._thread is not None:
            self._thread.join(_END_WITHIN_S)

    def _play(self, run: ScenarioRun) -> None:
        context = ScenarioContext(run, self._system, self._keeper, self.ledgers, self.failpoints, self._leaving)
        try:
            if run.scenario.failpoint is not None:
                context.arm(run.scenario.failpoint)
            run.scenario.play(context)
            context.pause(_BEFORE_VERDICT_S)
            run.findings = self.ledgers.answer(run.scenario.verdict, run.customer)
            run.state = RunState.ENDED
        except DemoError as error:
            run.failure = str(error)
            run.state = RunState.FAILED
        except Exception as error:
            run.failure = f"{type(error).__name__}: {error}"
            run.state = RunState.FAILED
        finally:
            context.disarm()
