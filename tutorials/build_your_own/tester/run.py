"""Runs several stages at the same time. Each stage has its own broker, port and store."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tutorials.build_your_own.curriculum import Stage
from tutorials.build_your_own.tester.broker_process import BrokerProcess
from tutorials.build_your_own.tester.children import Children
from tutorials.build_your_own.tester.failed import Failed, Interrupted
from tutorials.build_your_own.tester.ports import held_port
from tutorials.build_your_own.tester.timeline import Timeline
from tutorials.build_your_own.tester.trial import Claim, ClaimFailed, Trial
from tutorials.build_your_own.tester.verdict import Verdict

_GOES_ON: Final = Claim(
    "It still answers the requests of earlier stages",
    hint="Run the earlier stages again with --until N.",
    ours="broker/rocketmq_broker/remoting/dispatcher.py",
    apache="NettyRemotingAbstract",
)


@dataclass(frozen=True, slots=True)
class Order:
    """The command of the broker under test, and the folder and time limit of the test run."""

    command: Sequence[str]
    """The command that starts the broker. The tester adds `-c FILE`."""
    home: Path
    """The folder for stores, settings and logs, with a subfolder for each stage."""
    patience_s: float
    """The time limit in seconds for an immediate response."""
    side_by_side: int = 4


def run_stages(order: Order, stages: Sequence[Stage]) -> Iterator[Verdict]:
    """Yields the verdicts in stage order, each as soon as it is available. Kills all brokers at the end."""
    with Children() as children, ThreadPoolExecutor(order.side_by_side) as pool:
        try:
            coming = [pool.submit(run_stage, order, stage, children) for stage in stages]
            for verdict in coming:
                yield verdict.result()
        finally:
            # Stages that are still running end as soon as their brokers are killed.
            pool.shutdown(wait=False, cancel_futures=True)
            children.stop()


def run_stage(order: Order, stage: Stage, children: Children) -> Verdict:
    """Runs one stage with a new broker. Raises Interrupted if the tester is interrupted."""
    home = order.home / f"{stage.number:02}-{stage.name}"
    with held_port() as port:
        broker = BrokerProcess(order.command, home, port, stage.settings, children)
        trial = Trial(broker, Timeline(), order.patience_s)
        try:
            failure = _failure(trial, stage)
        finally:
            trial.hang_up()
            broker.end()
    if children.is_stopping:
        raise Interrupted
    timeline = trial.timeline
    return Verdict(stage, tuple(trial.held), failure, tuple(timeline.events), broker.output(), timeline.now_ms)


def _failure(trial: Trial, stage: Stage) -> ClaimFailed | None:
    try:
        stage.play(trial)
    except ClaimFailed as failed:
        return failed
    except Failed as failed:
        return ClaimFailed(_GOES_ON, failed)
    return None
