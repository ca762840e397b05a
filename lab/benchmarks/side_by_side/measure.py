"""Measures one load on one broker that starts with an empty store."""

import asyncio
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from demo.processes import Processes
from lab.benchmarks.side_by_side.brokers import ALL_DUE, BROKERS, NEVER_DUE, BrokerUnderTest
from lab.benchmarks.side_by_side.generator import drive_grpc_client, drive_java_client, generate
from lab.benchmarks.side_by_side.plan import (
    BY_GRPC,
    IN_FLIGHT_BEFORE_WARM_ROWS,
    MIN_WARM_S,
    WITH_BOTH_STATES,
    Kind,
    Load,
    Plan,
    Run,
    State,
)
from lab.benchmarks.side_by_side.probe import make_topic, visible_messages
from lab.benchmarks.side_by_side.sample import Others, Sample, Seen, generated_sample, java_sample
from lab.benchmarks.side_by_side.usage import Watch, load_average, used, watching

TOPIC = "Benchmark"
PENDING_TOPIC = "BenchmarkPending"


def measure(plan: Plan, run: Run, home: Path) -> list[Sample]:
    """Starts the broker, generates the loads, kills the broker, and deletes `home`.

    Returns a result for each load. Raises ProcessFailed.
    """
    load_before = load_average()
    try:
        with Processes(home / "logs") as processes:
            brokers = [
                BROKERS[run.side](processes, home / f"broker-{number}", run.load.flush) for number in range(run.load.brokers)
            ]
            try:
                benches = [_Bench(plan, load, processes, brokers, load_before) for load in run.loads]
                return _warm_rows(benches) if run.load.state is State.WARM else [_MEASURES[run.load.kind](benches[0])]
            finally:
                for broker in [broker for broker in brokers if broker.was_started]:
                    broker.kill()
    finally:
        shutil.rmtree(home, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class _Bench:
    """The objects that one measurement uses."""

    plan: Plan
    load: Load
    processes: Processes
    brokers: Sequence[BrokerUnderTest]
    load_before: float

    @property
    def broker(self) -> BrokerUnderTest:
        """The only broker, or the first of several brokers."""
        return self.brokers[0]

    @property
    def mode(self) -> str:
        """The generator's mode for messages of this load."""
        return "sends" if self.load.kind is Kind.SENDS else "transactions"

    @property
    def addresses(self) -> list[str]:
        """The brokers' addresses."""
        return [broker.address for broker in self.brokers]

    @property
    def times(self) -> dict[str, str]:
        """The warm-up time and the measured time, as options of the load generators."""
        return {"warm_up": f"{self.plan.warm_up_s}s", "measured": f"{self.plan.seconds}s"}

    def fill(self, mode: str, topic: str, messages: int) -> None:
        """Sends messages or half messages without measuring."""
        generate(self.processes, mode, [self.broker.address], topic=topic, messages=messages, body=self.plan.body_size)

    def generated(self, start_s: float, mode: str, **options: object) -> Sample:
        """Measures a load of our generator, which reports the end of its warm-up."""
        with watching(*(broker.process for broker in self.brokers)) as watch:
            printed = generate(self.processes, mode, self.addresses, on_start=watch.add_driver, topic=TOPIC, **options)
        return generated_sample(self.load.kind, printed, self.seen(watch, printed["began_s"], printed["ended_s"]), start_s)

    def driven(self, start_s: float, *arguments: object) -> Sample:
        """Measures a load of Apache's Java client."""
        with watching(self.broker.process) as watch:
            printed = drive_java_client(
                self.processes, [str(part) for part in arguments], self.load.header, on_start=watch.add_driver
            )
        return java_sample(self.load.kind, printed, self.seen_all_along(watch), start_s)

    def seen_all_along(self, watch: Watch) -> Seen:
        """Returns the usage between the first and the last reading."""
        return self.seen(watch, watch.readings[0].at_s, watch.readings[-1].at_s)

    def seen(self, watch: Watch, began_s: float, ended_s: float) -> Seen:
        """Returns the usage between the times `began_s` and `ended_s`."""
        spent = used(watch.readings, began_s, ended_s)
        programs = ", ".join(f"{name} {cpu_s:.1f} s" for name, cpu_s in watch.other_programs())
        others = Others(
            load_before=self.load_before,
            load_after=load_average(),
            processors=spent.others_s / (ended_s - began_s),
            programs=programs,
        )
        return Seen(spent.broker_s, watch.peak_mib, others)


def _warm_rows(benches: Sequence[_Bench]) -> list[Sample]:
    """Puts a load on the brokers until its rate is steady, and measures each row after a short load of its own."""
    first = benches[0]
    start_s = max(broker.start() for broker in first.brokers)
    warm = generate(
        first.processes,
        first.mode,
        first.addresses,
        topic=TOPIC,
        in_flight=IN_FLIGHT_BEFORE_WARM_ROWS // len(first.brokers),
        body=first.plan.body_size,
        warm_up=f"{min(MIN_WARM_S, first.plan.steady_within_s)}s",
        until_steady=f"{first.plan.steady_within_s}s",
    )
    return [replace(_sent(bench, start_s), warm_up_s=warm["seconds"], is_steady=warm["is_steady"]) for bench in benches]


def _sending(bench: _Bench) -> Sample:
    return replace(_sent(bench, max(broker.start() for broker in bench.brokers)), warm_up_s=bench.plan.warm_up_s)


def _sent(bench: _Bench, start_s: float) -> Sample:
    in_flight, body = bench.load.in_flight_at_each, bench.plan.body_size
    return bench.generated(start_s, bench.mode, in_flight=in_flight, body=body, **bench.times)


def _listener(bench: _Bench) -> Sample:
    sample = bench.generated(bench.broker.start(), "listener", rate=bench.plan.rate, body=bench.plan.body_size, **bench.times)
    return replace(sample, warm_up_s=bench.plan.warm_up_s)


def _pulls(bench: _Bench) -> Sample:
    start_s = bench.broker.start()
    bench.fill("fill", TOPIC, bench.plan.backlog)
    return bench.generated(start_s, "pulls", messages=bench.plan.backlog)


def _checks(bench: _Bench) -> Sample:
    """Sends transactions to a broker without check-backs. After a restart, all transactions are due at the first check."""
    bench.broker.checks = NEVER_DUE
    bench.broker.start()
    bench.fill("halves", TOPIC, bench.plan.pending)
    bench.broker.stop()
    bench.broker.checks = ALL_DUE
    return bench.generated(bench.broker.start(), "checks", messages=bench.plan.pending)


def _restart(bench: _Bench) -> Sample:
    bench.broker.checks = NEVER_DUE
    bench.broker.start()
    bench.fill("fill", TOPIC, bench.plan.backlog)
    bench.fill("halves", PENDING_TOPIC, bench.plan.pending)
    bench.broker.kill()
    with watching() as watch:
        start_s = bench.broker.start()
        watch.add_driver(bench.broker.process.pid)
    return Sample(result=start_s, start_s=start_s, others=bench.seen_all_along(watch).others)


def _by_grpc(bench: _Bench) -> Sample:
    """Measures a load of Apache's gRPC client. The client counts a message after the last response for this message."""
    broker, plan = bench.broker, bench.plan
    is_sent = bench.load.kind is not Kind.GRPC_RECEIVES
    mode = bench.load.kind.removeprefix("grpc-")
    broker.has_grpc = True
    start_s = broker.start()
    message_type = "TRANSACTION" if bench.load.kind is Kind.GRPC_TRANSACTIONS else "NORMAL"
    asyncio.run(make_topic(broker.address, TOPIC, message_type))
    if not is_sent:
        bench.fill("fill", TOPIC, plan.backlog)
    with watching(broker.process) as watch:
        printed = drive_grpc_client(
            bench.processes,
            broker.grpc_endpoint,
            mode,
            on_start=watch.add_driver,
            topic=TOPIC,
            in_flight=bench.load.in_flight,
            body=plan.body_size,
            **bench.times,
        )
    visible = asyncio.run(visible_messages(broker.address, TOPIC)) if is_sent else printed["taken"]
    return generated_sample(
        bench.load.kind, {**printed, "visible": visible}, bench.seen(watch, printed["began_s"], printed["ended_s"]), start_s
    )


def _java_transactions(bench: _Bench) -> Sample:
    broker, plan = bench.broker, bench.plan
    return bench.driven(broker.start(), broker.namesrv_addr, bench.load.in_flight, plan.body_size, plan.seconds)


def _java_consumer(bench: _Bench) -> Sample:
    broker, plan = bench.broker, bench.plan
    return bench.driven(broker.start(), "consume", broker.namesrv_addr, plan.consumed, plan.body_size)


_MEASURES: Mapping[Kind, Callable[[_Bench], Sample]] = {
    **dict.fromkeys(WITH_BOTH_STATES, _sending),
    Kind.LISTENER: _listener,
    Kind.PULLS: _pulls,
    Kind.CHECKS: _checks,
    Kind.RESTART: _restart,
    Kind.JAVA_TRANSACTIONS: _java_transactions,
    Kind.JAVA_CONSUMER: _java_consumer,
    **dict.fromkeys(BY_GRPC, _by_grpc),
}
