"""Plays scenarios, one at a time, each in its own thread."""

from __future__ import annotations

import threading
import uuid

from demo.errors import DemoError
from demo.scenarios.failpoints import FailpointFolder, find
from demo.scenarios.ledger import Ledgers
from demo.scenarios.plays import SCENARIOS
from demo.scenarios.scenario import RunState, ScenarioRun, ScenarioStep
from demo.scenarios.stage import Stage
from demo.system import System
from demo.up.keeper import Keeper
from rocketmq_broker.admin.timeline.event import Event

_END_WITHIN_S = 10
MAX_RUNS = 50
"""The number of remembered runs."""


class Runs:
    """The runs so far, the newest last."""

    def __init__(self, system: System, keeper: Keeper, failpoints: FailpointFolder) -> None:
        """`failpoints` belong to the system's processes."""
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
        """Returns all runs that are remembered."""
        return list(self._runs)

    @property
    def running(self) -> ScenarioRun | None:
        """The run in play, or None."""
        return next((run for run in self._runs if run.state is RunState.RUNNING), None)

    def find(self, number: int) -> ScenarioRun | None:
        """Returns the run with that number, or None."""
        return next((run for run in self._runs if run.number == number), None)

    def start(self, name: str) -> ScenarioRun:
        """Starts a scenario. Raises DemoError if there is none of that name, or one is in play."""
        scenario = next((one for one in SCENARIOS if one.name == name), None)
        if scenario is None:
            raise DemoError(f"there is no scenario {name}")
        with self._lock:
            if (running := self.running) is not None:
                raise DemoError(f"“{running.scenario.title}” is played at the moment: wait until it is over")
            if not self._keeper.is_all_ready:
                raise DemoError("not everything is ready yet: wait a moment")
            self._count += 1
            run = ScenarioRun(self._count, scenario, f"{scenario.name}-{uuid.uuid4().hex[:8]}")
            self._runs = [*self._runs, run][-MAX_RUNS:]
            self._thread = threading.Thread(target=self._play, args=(run,), name=f"scenario {run.number}", daemon=True)
            self._thread.start()
        return run

    def steps(self, run: ScenarioRun) -> list[ScenarioStep]:
        """Returns the steps of a run, and the failpoints hit in it."""
        hits = [hit for hit in self.failpoints.hits() if hit.meant_for == run.customer]
        seen = [ScenarioStep(hit.at_ms, f"failpoint {hit.failpoint} is hit: {find(hit.failpoint).what}") for hit in hits]
        return sorted([*run.steps, *seen], key=lambda step: step.at_ms)

    def events(self, transaction_id: str) -> list[Event]:
        """Returns the faults of the run with that transaction, and the failpoints that the transaction hit."""
        of_runs = [event for run in self._runs if run.transaction_id == transaction_id for event in run.events]
        return [*of_runs, *self.failpoints.events(transaction_id)]

    def stop(self) -> None:
        """Ends the run in play."""
        self._leaving.set()
        self.wait()

    def wait(self) -> None:
        """Waits for the end of the run in play, up to some seconds."""
        if self._thread is not None:
            self._thread.join(_END_WITHIN_S)

    def _play(self, run: ScenarioRun) -> None:
        stage = Stage(run, self._system, self._keeper, self.ledgers, self.failpoints, self._leaving)
        try:
            if run.scenario.failpoint is not None:
                stage.arm(run.scenario.failpoint)
            run.scenario.play(stage)
            stage.pause(1)
            run.findings = self.ledgers.answer(run.scenario.verdict, run.customer)
            run.state = RunState.ENDED
        except DemoError as error:
            run.failure = str(error)
            run.state = RunState.FAILED
        except Exception as error:
            run.failure = f"{type(error).__name__}: {error}"
            run.state = RunState.FAILED
        finally:
            stage.disarm()
