"""Compares the transactional broker with a model. In any order of events, each transaction has exactly one outcome."""

import copy
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rocketmq_broker.message import properties as props
from rocketmq_broker.message.ids import offset_message_id
from rocketmq_broker.remoting.dispatcher import RequestRefused
from rocketmq_broker.server.transactions.check_service import HELD_BACK_MS
from rocketmq_broker.store import Appended
from rocketmq_broker.transaction.pending_transaction import PendingTransaction
from tests.unit.server.hostile_attacks import ATTACKS, FORGED, HostileClient
from tests.unit.server.transaction_broker import (
    DISCARD_TOPIC,
    HALF_TOPIC,
    OP_TOPIC,
    POLICY,
    STORE_HOST,
    TRANSACTION_GROUP,
    Check,
    Producer,
    TransactionBroker,
)
from tests.unit.transaction.records import pending

COMMIT, ROLLBACK, UNKNOWN = 8, 12, 0
IMMUNITY_S = 3
ANSWER_TIMEOUT_MS = 5000
FOUR_DAYS_MS = 4 * 24 * 3_600_000
MAX_WAIT_MS = max(POLICY.check_interval_ms, IMMUNITY_S * 1000)
PENDING, COMMITTED, ROLLED_BACK, DISCARDED, RESUMED = "pending", "committed", "rolled back", "discarded", "resumed"
OUTCOMES = {COMMIT: COMMITTED, ROLLBACK: ROLLED_BACK}


@dataclass(slots=True)
class Transaction:
    """A transaction in the model. A resumed message begins another transaction with the same id."""

    transaction_id: str
    half: Appended
    sender: Producer
    due_ms: int
    born_ms: int
    state: str = PENDING
    checks: int = 0
    checks_kept: int = 0


@dataclass(slots=True)
class Debts:
    """A producer's unanswered check-backs in the model: the half message and time of each."""

    asked: list[tuple[int, int | None]] = field(default_factory=list)
    """None instead of the time: the check is overdue."""
    seen: int = 0
    """So many of its checks were looked at."""

    def notice_time(self, now_ms: int) -> None:
        self.asked = [(offset, ms if ms is not None and now_ms - ms < ANSWER_TIMEOUT_MS else None) for offset, ms in self.asked]

    def clock_stepped(self, step_ms: int) -> None:
        self.asked = [(offset, ms + step_ms if ms is not None else None) for offset, ms in self.asked]

    def owes(self, commit_log_offset: int) -> bool:
        return self.count_owed(commit_log_offset) > 0

    def count_owed(self, commit_log_offset: int) -> int:
        return sum(offset == commit_log_offset and ms is not None for offset, ms in self.asked)

    def count(self, commit_log_offset: int) -> int:
        return sum(offset == commit_log_offset for offset, _ in self.asked)

    def answered(self, commit_log_offset: int) -> None:
        """Removes the check-backs of this half message, and all overdue check-backs.

        The broker treats overdue check-backs as lost once the producer has responded to another one.
        """
        self.asked = [(offset, ms) for offset, ms in self.asked if offset != commit_log_offset and ms is not None]


@dataclass(slots=True)
class Model:
    """All transactions, keyed by the commit log offset of the half message, which is also part of each decision."""

    all: dict[int, Transaction] = field(default_factory=dict)

    def ids(self, state: str) -> list[str]:
        return sorted(one.transaction_id for one in self.all.values() if one.state == state)

    def pending(self) -> list[Transaction]:
        return [one for one in self.all.values() if one.state == PENDING]

    def states(self) -> dict[int, str]:
        return {offset: one.state for offset, one in self.all.items()}

    def go_back_to(self, states: dict[int, str]) -> None:
        """Restores the given states. Later events are lost, except the numbers and times of check-backs."""
        self.all = {offset: one for offset, one in self.all.items() if offset in states}
        for offset, one in self.all.items():
            one.state = states[offset]


class TransactionalBroker(RuleBasedStateMachine):
    """Random sends, decisions, duplicates, ticks, restarts, full disks, clock steps, and producers that come and go.

    A hostile client takes part. It has all data of the honest transactions and sends every request that a client can send.
    """

    @initialize()
    def start(self) -> None:
        self.broker = TransactionBroker(answer_timeout_ms=ANSWER_TIMEOUT_MS)
        self.producers = [Producer(f"127.0.0.1:{port}") for port in (5001, 5002, 5003)]
        self.broker.online(*self.producers)
        self.debts = {producer.peer: Debts() for producer in self.producers}
        self.model = Model()
        self.durable: dict[int, str] = {}
        self.sent = 0
        self.hostile = HostileClient(self.broker)
        self.forged: set[int] = set()
        """Commit log offsets of the hostile client's half messages."""

    # Producers.

    @rule(sender=st.integers(0, 2), immunity=st.sampled_from([None, None, str(IMMUNITY_S)]), flush=st.booleans())
    def send(self, sender: int, immunity: str | None, flush: bool) -> None:
        self.sent += 1
        transaction_id = f"T{self.sent}"
        more = {"CHECK_IMMUNITY_TIME_IN_SECONDS": immunity} if immunity else {}
        half = self.broker.send(self.producers[sender], transaction_id, flush=flush, **more)
        due_ms = self.broker.now_ms + (IMMUNITY_S * 1000 if immunity else POLICY.transaction_timeout_ms)
        self.model.all[half.commit_log_offset] = Transaction(
            transaction_id, half, self.producers[sender], due_ms, self.broker.now_ms
        )
        self._flushed(flush)

    @rule(sender=st.integers(0, 2), answer=st.sampled_from([COMMIT, ROLLBACK]))
    def send_and_decide_ten(self, sender: int, answer: int) -> None:
        """Sends and decides ten transactions.

        An older pending half message is then so far behind the end of the half queue that the broker must write a copy.
        """
        for _ in range(10):
            self.send(sender, None, True)
            latest = self.model.all[max(self.model.all)]
            self._decide(latest, latest.half, answer, True)

    @precondition(lambda self: self.durable)
    @rule(data=st.data(), answer=st.sampled_from([COMMIT, ROLLBACK]), flush=st.booleans())
    def decide(self, data: st.DataObject, answer: int, flush: bool) -> None:
        chosen = data.draw(st.sampled_from(sorted(self.durable)))  # a producer knows what was acknowledged
        self._decide(self.model.all[chosen], self.model.all[chosen].half, answer, flush)

    @precondition(lambda self: any(producer.checks for producer in self.producers))
    @rule(data=st.data(), answer=st.sampled_from([COMMIT, ROLLBACK, UNKNOWN]), flush=st.booleans())
    def answer(self, data: st.DataObject, answer: int, flush: bool) -> None:
        producer = data.draw(st.sampled_from([producer for producer in self.producers if producer.checks]))
        check = data.draw(st.sampled_from(producer.checks))
        transaction = self.model.all.get(check.commit_log_offset)
        if check.body == FORGED:
            self._know_nothing_of(check, producer)
            return
        if transaction is None or transaction.transaction_id != check.transaction_id:
            return  # the disk lost it after the check was sent
        self._decide(transaction, check, answer, flush, producer)

    def _know_nothing_of(self, check: Check, producer: Producer) -> None:
        """Sends UNKNOWN for a check-back about a hostile client's transaction, as an honest producer does."""
        self.debts[producer.peer].answered(check.commit_log_offset)
        self.broker.end(producer, check, UNKNOWN, flush=False, from_check=True, is_oneway=True)

    def _decide(
        self, transaction: Transaction, half: Appended | Check, answer: int, flush: bool, answering: Producer | None = None
    ) -> None:
        producer = answering or self.producers[0]
        if answering is not None:
            self.debts[answering.peer].answered(half.commit_log_offset)
        if transaction.state == PENDING or answer == UNKNOWN:
            self.broker.end(producer, half, answer, flush=flush, from_check=answering is not None, is_oneway=True)
            if answer != UNKNOWN:
                transaction.state = OUTCOMES[answer]
            self._flushed(flush)
        else:
            with pytest.raises(RequestRefused, match="already"):
                self.broker.end(producer, half, answer, flush=False, from_check=answering is not None)

    @precondition(lambda self: self.model.pending())
    @rule(data=st.data(), answer=st.sampled_from([COMMIT, ROLLBACK]))
    def decide_wrongly(self, data: st.DataObject, answer: int) -> None:
        half = data.draw(st.sampled_from([one.half for one in self.model.pending()]))
        with pytest.raises(RequestRefused, match="group"):
            self.broker.end(self.producers[0], half, answer, group="stranger", flush=False)
        wrong = Appended(half.commit_log_offset, half.queue_offset + 1, 0)
        with pytest.raises(RequestRefused, match="offset"):
            self.broker.end(self.producers[0], wrong, answer, flush=False)

    # Who means harm.

    @precondition(lambda self: self.model.all)
    @rule(data=st.data(), kind=st.integers(0, len(ATTACKS) - 1))
    def attack(self, data: st.DataObject, kind: int) -> None:
        self._flush()
        victim = self.model.all[data.draw(st.sampled_from(sorted(self.model.all)))]
        self.hostile.attack(kind, victim.transaction_id, victim.half, victim.born_ms)
        self.forged |= self.hostile.half_offsets

    @rule(online=st.sets(st.integers(0, 2)))
    def come_and_go(self, online: set[int]) -> None:
        """Disconnects all producers that are not in `online`, and connects the others.

        The check-backs of a disconnected producer no longer count, because it cannot respond to them.
        """
        staying = [self.producers[index] for index in sorted(online)]
        for producer in [one for one in self.broker.producers["order_service"] if one not in staying]:
            self.broker.leave(producer)
            debts = self.debts[producer.peer]
            for transaction in self.model.pending():
                self._were_given_back(transaction, debts)
            debts.asked.clear()
        self.broker.online(*staying)

    def _were_given_back(self, transaction: Transaction, debts: Debts) -> None:
        offset = transaction.half.commit_log_offset
        transaction.checks -= debts.count(offset)
        assert pending(self.broker.messages.table, offset).checks == transaction.checks

    # Time.

    @rule(elapsed_ms=st.sampled_from([0, 500, 1000, 2000, 5000]))
    def tick(self, elapsed_ms: int) -> None:
        self.broker.now_ms += elapsed_ms
        self._tick()

    @rule()
    def tick_until_checks_are_used_up(self) -> None:
        for _ in range(POLICY.check_max + 1):
            self.tick(5000)

    @rule(step_ms=st.sampled_from([-30_000, -1500, 1500, 30_000]))
    def clock_set(self, step_ms: int) -> None:
        self.broker.step_clock(step_ms)
        for transaction in self.model.all.values():
            transaction.due_ms += step_ms
        for debts in self.debts.values():
            debts.clock_stepped(step_ms)
        self._tick()

    @rule(elapsed_ms=st.sampled_from([0, 4000]))
    def clock_four_days_ahead_for_a_while(self, elapsed_ms: int) -> None:
        self.clock_set(FOUR_DAYS_MS)
        self.tick(elapsed_ms)
        self.clock_set(-FOUR_DAYS_MS)

    def _tick(self) -> None:
        self.broker.tick()
        self._looked()

    def _looked(self) -> None:
        """Updates the model after the broker has checked its transactions, and compares both."""
        now_ms = self.broker.now_ms
        online = self.broker.producers["order_service"]
        for debts in self.debts.values():
            debts.notice_time(now_ms)
        asked = self._newly_asked()
        for transaction in self.model.pending():
            offset = transaction.half.commit_log_offset
            if transaction.due_ms > now_ms:
                assert offset not in asked
                continue
            transaction.due_ms = now_ms + POLICY.check_interval_ms
            if offset in asked:
                self._was_asked(transaction, asked[offset], online)
            elif transaction.checks >= POLICY.check_max and not self._is_owed(offset, online):
                transaction.state = DISCARDED
            elif online:
                is_stored = offset in self.durable
                is_busy = all(self.debts[producer.peer].asked for producer in online)
                assert not is_stored or is_busy or transaction.checks >= POLICY.check_max, "nobody was asked"
                transaction.due_ms = now_ms + HELD_BACK_MS
        for offset, (producer, _) in asked.items():
            self.debts[producer.peer].asked.append((offset, now_ms))
        self._flushed(True)

    def _newly_asked(self) -> dict[int, tuple[Producer, Check]]:
        asked: dict[int, tuple[Producer, Check]] = {}
        for producer in self.producers:
            debts = self.debts[producer.peer]
            for check in producer.checks[debts.seen :]:
                assert check.commit_log_offset not in asked, "two were asked about one transaction at once"
                asked[check.commit_log_offset] = producer, check
            debts.seen = len(producer.checks)
        return asked

    def _was_asked(self, transaction: Transaction, asked: tuple[Producer, Check], online: list[Producer]) -> None:
        producer, check = asked
        assert producer in online
        assert not self.debts[producer.peer].owes(check.commit_log_offset), "it owes that answer still"
        transaction.checks += 1
        assert (check.transaction_id, check.times) == (transaction.transaction_id, transaction.checks)
        assert transaction.checks <= POLICY.check_max
        if transaction.sender in online and not self.debts[transaction.sender.peer].asked:
            assert producer is transaction.sender

    def _is_owed(self, commit_log_offset: int, online: list[Producer]) -> bool:
        return any(self.debts[producer.peer].owes(commit_log_offset) for producer in online)

    # Operators.

    @precondition(lambda self: any(one.state == DISCARDED for one in self.model.all.values()))
    @rule(data=st.data())
    def resume(self, data: st.DataObject) -> None:
        self._flush()
        found = self._honest(DISCARD_TOPIC)
        record = data.draw(st.sampled_from(found))
        transaction_id = record.get_property(props.UNIQUE_KEY)
        message_id = offset_message_id(STORE_HOST, record.commit_log_offset)
        is_last = all(other.get_property(props.UNIQUE_KEY) != transaction_id for other in found[found.index(record) + 1 :])
        mine = [one for one in self.model.all.values() if one.transaction_id == transaction_id]
        if not is_last or mine[-1].state != DISCARDED:
            with pytest.raises(RequestRefused, match="already"):
                self.broker.resume(self.producers[0], message_id)
            return
        self.broker.resume(self.producers[0], message_id)
        mine[-1].state = RESUMED
        half = self._honest(HALF_TOPIC)[-1]
        # An immunity is kept, and begins again.
        due_ms = self.broker.policy.first_check_due(self.broker.now_ms, half.properties)
        place = Appended(half.commit_log_offset, half.queue_offset, 0)
        self.model.all[half.commit_log_offset] = Transaction(transaction_id, place, mine[-1].sender, due_ms, mine[-1].born_ms)
        self._flushed(True)

    # Disks and restarts.

    @rule()
    def flush(self) -> None:
        self._flush()

    @rule()
    def keep(self) -> None:
        self._flush()
        self.broker.notes.finish()
        for transaction in self.model.all.values():
            offset = transaction.half.commit_log_offset
            transaction.checks_kept = transaction.checks - sum(debts.count(offset) for debts in self.debts.values())

    @rule()
    def note_offsets(self) -> None:
        self.broker.notes.note_offsets()

    @rule()
    def disk_full(self) -> None:
        self.broker.disk.is_full = True
        self.broker.flush()
        self.broker.disk.is_full = False
        self.model.go_back_to(self.durable)

    @rule()
    def power_failure(self) -> None:
        self.model.go_back_to(self.durable)
        self._restarted(self.broker.restarted(self.broker.files.powered_off()))

    @rule(is_written=st.booleans())
    def kill(self, is_written: bool) -> None:
        if is_written:
            self.broker.store.write()
        else:
            self.model.go_back_to(self.durable)
        self._restarted(self.broker.restarted())

    def _restarted(self, broker: TransactionBroker) -> None:
        broker.producers = self.broker.producers
        self.broker = broker
        self.hostile = HostileClient(broker)
        for debts in self.debts.values():
            debts.asked.clear()
        for one in self._honestly_pending():
            transaction = self.model.all[one.commit_log_offset]
            assert transaction.checks_kept <= one.checks <= transaction.checks, transaction
            transaction.checks = one.checks
            transaction.due_ms = one.due_ms
            assert one.due_ms <= broker.now_ms + MAX_WAIT_MS
        self._flushed(True)

    def _honest(self, topic: str, queue_id: int = 0) -> list[Any]:
        return [record for record in self.broker.records(topic, queue_id) if record.body != FORGED]

    def _honestly_pending(self) -> list[PendingTransaction]:
        return [one for one in self.broker.messages if one.commit_log_offset not in self.forged]

    def _flush(self) -> None:
        self.broker.flush()
        self._flushed(True)

    def _flushed(self, is_flushed: bool) -> None:
        if is_flushed:
            self.durable = copy.copy(self.model.states())

    # What must always be true.

    @invariant()
    def the_table_holds_what_is_pending(self) -> None:
        table = {one.commit_log_offset: one.checks for one in self._honestly_pending()}
        assert table == {one.half.commit_log_offset: one.checks for one in self.model.pending()}

    @invariant()
    def consumers_see_each_committed_message_once_and_nothing_else(self) -> None:
        flushed = [self.model.all[offset].transaction_id for offset, state in self.durable.items() if state == COMMITTED]
        assert sorted(record.get_property(props.UNIQUE_KEY) for record in self._honest("orders", 2)) == sorted(flushed)

    @invariant()
    def each_discarded_message_can_be_read(self) -> None:
        gone = [self.model.all[offset].transaction_id for offset, state in self.durable.items() if state in (DISCARDED, RESUMED)]
        assert sorted(record.get_property(props.UNIQUE_KEY) for record in self._honest(DISCARD_TOPIC)) == sorted(gone)

    @invariant()
    def apache_would_find_the_same_pending_transactions(self) -> None:
        if self.durable != self.model.states():
            return
        half_offset = self.broker.consumer_offsets.get(TRANSACTION_GROUP, HALF_TOPIC, 0) or 0
        op_offset = self.broker.consumer_offsets.get(TRANSACTION_GROUP, OP_TOPIC, 0) or 0
        closed = {int(op.body) for op in self.broker.records(OP_TOPIC) if op.queue_offset >= op_offset}
        found = [
            half.get_property(props.UNIQUE_KEY)
            for half in self._honest(HALF_TOPIC)
            if half.queue_offset >= half_offset and half.queue_offset not in closed
        ]
        assert sorted(found) == self.model.ids(PENDING)


TestTransactionalBroker = pytest.mark.slow(TransactionalBroker.TestCase)
TestTransactionalBroker.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
