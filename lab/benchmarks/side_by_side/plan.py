"""The plan of a measurement: its loads, their order and the approximate duration."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from lab.benchmarks.side_by_side.brokers import ASYNC, SYNC, Side

BINARY_HEADERS = "ROCKETMQ"
IN_FLIGHT_BEFORE_WARM_ROWS = 64
"""The number of unanswered requests while the brokers are warmed for the rows of State.WARM."""
MIN_WARM_S = 10
"""The minimum duration in seconds of that load, which then lasts until it is steady."""
JAVA_WARM_UP_S = 10
"""The duration in seconds of the warm-up, which is part of the Java client's run."""
_START_AND_STOP_S = {Side.OURS: 2, Side.INTERPRETED: 2, Side.APACHE: 8, Side.APACHE_5: 10, Side.FLOOR: 1}
_GENERATOR_S = 2
_JAVA_S = 4
_CONSUMED_PER_S = 6_000
_FILLED_PER_S = 25_000
_PULLED_PER_S = 60_000
_HALVES_PER_S = 10_000
_CHECKED_PER_S = 5_000
_CHECKS_BEGIN_AND_SETTLE_S = 20


class Kind(StrEnum):
    """A kind of load."""

    TRANSACTIONS = "transactions"
    """Half messages, each of which is committed as soon as the broker has answered it."""
    TWO_BROKERS = "two-brokers"
    """The load of TRANSACTIONS at two brokers on the same CPUs. Each broker has half of the messages in flight."""
    SENDS = "sends"
    """Ordinary messages, without transactions."""
    LISTENER = "listener"
    """Transactions at a steady rate. The result is the time from the send until a waiting pull returns the message."""
    PULLS = "pulls"
    """Pulls of messages that were stored before."""
    CHECKS = "checks"
    """The check-backs of a broker that starts with many pending transactions. All check-backs are due at the same time."""
    RESTART = "restart"
    """The time from the broker's start after kill -9 to the first accepted message."""
    JAVA_TRANSACTIONS = "java transactions"
    """The load of TRANSACTIONS, sent by threads of Apache's Java client."""
    JAVA_CONSUMER = "java consumer"
    """Transactions sent by eight threads of Apache's Java client, and received by its push consumer."""
    GRPC_SENDS = "grpc-sends"
    """Ordinary messages, sent by Apache's gRPC client for Go. Apache's broker receives them through its proxy in local mode."""
    GRPC_TRANSACTIONS = "grpc-transactions"
    """The load of TRANSACTIONS, sent by Apache's gRPC client for Go."""
    GRPC_RECEIVES = "grpc-receives"
    """Stored messages, which Apache's gRPC client for Go receives and acknowledges one by one."""


class State(StrEnum):
    """The state of the brokers in which a load is measured."""

    COLD = "cold"
    """Each row has a new process, which has run for the seconds of the warm-up."""
    WARM = "warm"
    """The rows share a process, which has run under load until its rate was steady."""


WITH_BOTH_STATES = (Kind.TRANSACTIONS, Kind.TWO_BROKERS, Kind.SENDS)
"""The kinds of load that are measured in both states, and that the floor serves. All others are measured cold."""
GENERATED = (Kind.TRANSACTIONS, Kind.TWO_BROKERS, Kind.SENDS, Kind.LISTENER, Kind.PULLS, Kind.CHECKS, Kind.RESTART)
"""The kinds of load that our generator produces."""
BY_GRPC = (Kind.GRPC_SENDS, Kind.GRPC_TRANSACTIONS, Kind.GRPC_RECEIVES)
"""The kinds of load that Apache's gRPC client produces."""

_WANTED_OF_TRANSACTIONS: Mapping[tuple[str, int | None], float] = {
    (SYNC, 1): 1.5,
    (SYNC, 32): 3.0,
    (SYNC, 128): 6.0,
    (ASYNC, 1): 1.5,
    (ASYNC, 32): 1.5,
    (ASYNC, 128): 1.3,
}
_WANTED_OF_TWO_BROKERS = 1.8
_WANTED = 1.2
_UNITS = {
    Kind.TRANSACTIONS: "committed/s",
    Kind.TWO_BROKERS: "committed/s",
    Kind.SENDS: "messages/s",
    Kind.LISTENER: "ms, p99",
    Kind.PULLS: "MB/s",
    Kind.CHECKS: "s until all are committed",
    Kind.RESTART: "s to the first answer",
    Kind.JAVA_TRANSACTIONS: "committed/s",
    Kind.JAVA_CONSUMER: "received/s",
    Kind.GRPC_SENDS: "messages/s",
    Kind.GRPC_TRANSACTIONS: "committed/s",
    Kind.GRPC_RECEIVES: "acknowledged/s",
}


@dataclass(frozen=True, slots=True)
class Load:
    """A load that is generated for each broker, shown as a group of rows in the table."""

    kind: Kind
    flush: str
    in_flight: int | None = None
    """The number of unanswered requests at any time. For the Java client, the number of threads."""
    header: str = BINARY_HEADERS
    state: State = State.COLD

    @property
    def name(self) -> str:
        """The name of the load in tables."""
        flush = self.flush.removesuffix("_FLUSH")
        if self.kind is Kind.JAVA_TRANSACTIONS:
            return f"{flush} {self.header} {self.in_flight} Java threads"
        if self.kind is Kind.JAVA_CONSUMER:
            return f"{flush} {self.header} Java consumer"
        in_flight = "" if self.in_flight is None else f" {self.in_flight} in flight"
        state = f", {self.state}" if self.kind in WITH_BOTH_STATES else ""
        return f"{flush} {self.kind}{in_flight}{state}"

    @property
    def unit(self) -> str:
        """The unit of the load's result."""
        return _UNITS[self.kind]

    @property
    def is_less_better(self) -> bool:
        """True if the result is a time, so that a smaller result is better."""
        return self.kind in (Kind.LISTENER, Kind.CHECKS, Kind.RESTART)

    @property
    def wanted(self) -> float:
        """The target ratio of this row: the smallest ratio to Apache's result that the project accepts."""
        match self.kind:
            case Kind.TRANSACTIONS:
                return _WANTED_OF_TRANSACTIONS.get((self.flush, self.in_flight), _WANTED)
            case Kind.TWO_BROKERS:
                return _WANTED_OF_TWO_BROKERS
            case Kind.SENDS | Kind.PULLS | Kind.CHECKS | Kind.RESTART:
                return _WANTED
            case _:
                return 1.0

    @property
    def brokers(self) -> int:
        """The number of brokers that share the load. Each broker has its own store."""
        return 2 if self.kind is Kind.TWO_BROKERS else 1

    @property
    def in_flight_at_each(self) -> int | None:
        """The number of unanswered requests at each broker at any time."""
        return None if self.in_flight is None else max(1, self.in_flight // self.brokers)


@dataclass(frozen=True, slots=True)
class Run:
    """The measurement of one load or, if they are warm, of several loads in turn on one broker."""

    round: int
    loads: tuple[Load, ...]
    side: Side

    @property
    def load(self) -> Load:
        """The first load. All loads have its kind, flush type and state."""
        return self.loads[0]

    @property
    def name(self) -> str:
        """The name of the run in messages."""
        more = f" and {len(self.loads) - 1} more" if len(self.loads) > 1 else ""
        return f"{self.load.name}{more}, {self.side.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The parameters of a measurement, which determine all its runs."""

    sides: Sequence[Side] = (Side.OURS, Side.APACHE)
    loads: Sequence[Load]
    rounds: int
    warm_up_s: int
    steady_within_s: int
    """The maximum duration in seconds of the load before the rows of State.WARM."""
    seconds: int
    body_size: int
    rate: int
    """The rate of LISTENER, in transactions per second."""
    backlog: int
    """The number of messages that PULLS pulls, and that are stored when RESTART begins."""
    pending: int
    """The number of undecided transactions that are stored when CHECKS and RESTART begin."""
    consumed: int
    """The number of messages that JAVA_CONSUMER sends and receives."""

    def runs(self) -> list[Run]:
        """Returns the runs. All brokers run in turn. In every second round, the order of brokers is reversed."""
        return [
            Run(number, loads, side)
            for number in range(self.rounds)
            for loads in _of_one_process(self.loads)
            for side in (self.sides if number % 2 == 0 else self.sides[::-1])
            if side is not Side.FLOOR or loads[0].kind in WITH_BOTH_STATES
        ]

    def run_s(self, run: Run) -> float:
        """Returns the approximate duration of a run in seconds."""
        start_s = _START_AND_STOP_S[run.side] * run.load.brokers
        match run.load.kind:
            case Kind.PULLS:
                return start_s + self.backlog / _FILLED_PER_S + self.backlog / _PULLED_PER_S
            case Kind.GRPC_RECEIVES:
                return start_s + self.backlog / _FILLED_PER_S + self.warm_up_s + self.seconds + _GENERATOR_S
            case Kind.CHECKS:
                return 2 * start_s + self.pending / _HALVES_PER_S + self.pending / _CHECKED_PER_S + _CHECKS_BEGIN_AND_SETTLE_S
            case Kind.RESTART:
                return 2 * start_s + self.backlog / _FILLED_PER_S + self.pending / _HALVES_PER_S
            case Kind.JAVA_TRANSACTIONS:
                return start_s + JAVA_WARM_UP_S + self.seconds + _JAVA_S
            case Kind.JAVA_CONSUMER:
                return start_s + self.consumed / _CONSUMED_PER_S + 2 * _JAVA_S
            case _:
                return start_s + self._warming_s(run) + len(run.loads) * (self.warm_up_s + self.seconds + _GENERATOR_S)

    def _warming_s(self, run: Run) -> int:
        if run.load.state is State.COLD:
            return 0
        is_java = run.side in (Side.APACHE, Side.APACHE_5)
        return self.steady_within_s if is_java else min(self.steady_within_s, MIN_WARM_S)

    def total_s(self) -> float:
        """Returns the approximate duration of all runs in seconds."""
        return sum(map(self.run_s, self.runs()))


def _of_one_process(loads: Sequence[Load]) -> list[tuple[Load, ...]]:
    """Returns the loads, with neighbours that are warm and differ only in the number in flight together."""

    def process_of(numbered: tuple[int, Load]) -> tuple[object, ...]:
        number, load = numbered
        return (load.kind, load.flush) if load.state is State.WARM else (number,)

    return [tuple(load for _, load in group) for _, group in groupby(enumerate(loads), process_of)]


def generated_loads(
    kinds: Sequence[Kind], flushes: Sequence[str], in_flight: Sequence[int], states: Sequence[State] = (State.COLD,)
) -> list[Load]:
    """Returns the rows of these kinds.

    A kind that only reads or recovers a store has one row, because the flush type does not affect it.
    """
    return [
        load
        for kind in kinds
        for state in (states if kind in WITH_BOTH_STATES else [State.COLD])
        for load in _loads_of(kind, flushes, in_flight, state)
    ]


def _loads_of(kind: Kind, flushes: Sequence[str], in_flight: Sequence[int], state: State) -> list[Load]:
    match kind:
        case Kind.TRANSACTIONS | Kind.SENDS | Kind.GRPC_SENDS | Kind.GRPC_TRANSACTIONS:
            return [Load(kind, flush, number, state=state) for flush in flushes for number in in_flight]
        case Kind.TWO_BROKERS:
            return [Load(kind, ASYNC, number, state=state) for number in in_flight if number > 1 and ASYNC in flushes]
        case Kind.LISTENER:
            return [Load(kind, flush) for flush in flushes]
        case Kind.CHECKS:
            return [Load(kind, SYNC)]
        case Kind.GRPC_RECEIVES:
            return [Load(kind, ASYNC, number) for number in in_flight]
        case Kind.PULLS | Kind.RESTART:
            return [Load(kind, ASYNC)]
        case _:
            raise ValueError(f"{kind} needs Apache's Java client")


def java_loads(flushes: Sequence[str], headers: Sequence[str], threads: Sequence[int], *, with_consumer: bool) -> list[Load]:
    """Returns a load of Apache's Java client for each combination of the arguments."""
    loads: list[Load] = []
    for flush in flushes:
        for header in headers:
            loads += [Load(Kind.JAVA_TRANSACTIONS, flush, number, header) for number in threads]
            if with_consumer:
                loads.append(Load(Kind.JAVA_CONSUMER, flush, None, header))
    return loads
