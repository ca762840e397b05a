"""Bugs planted in the broker's server: transactions and pulls."""

from typing import Any, Final

from lab.simulation.judges.violation import Promise
from rocketmq_broker.message import sysflag
from rocketmq_broker.protocol import pull_sysflag
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.headers.pull import PullMessageRequestHeader
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.store.queues.unit_files import UNIT_SIZE
from rocketmq_broker.transaction import transitions
from rocketmq_broker.transaction.decision import EndAction, EndDecision, EndRequest, Refusal
from rocketmq_broker.transaction.pending import _Kind
from rocketmq_broker.transaction.pending_transaction import PendingTransaction
from rocketmq_broker.transaction.states import State
from tests.lab.planted.patches import Patches
from tests.lab.planted.planted_bug import planted_bug

_MESSAGES: Final = "rocketmq_broker.server.transactions.transactional_messages:TransactionalMessages"
_DECIDED: Final = (Refusal.ALREADY_COMMITTED, Refusal.ALREADY_ROLLED_BACK, Refusal.ALREADY_DECIDED)


@planted_bug(
    needs="an answer to a check-back that comes after the COMMIT, or a broker that restarts between the two",
    breaks=Promise.LIES_THERE_ONCE,
    noticed_by="tests/unit/server/transactions/test_check_service.py::test_the_answer_to_a_check_decides_once",
    seed=45,
)
def second_commit_accepted(patches: Patches) -> None:
    """A COMMIT about a transaction that is decided already delivers its message again."""

    decide = patches.original(f"{_MESSAGES}.decide")

    def every_commit_wins(self: Any, request: EndRequest) -> EndDecision:
        decision: EndDecision = decide(self, request)
        if decision.refusal not in _DECIDED or request.commit_or_rollback != sysflag.TRANSACTION_COMMIT_TYPE:
            return decision
        half = self._bridge.message_at(request.commit_log_offset)
        if half is None:
            return decision
        topic, queue_id = half.destination()
        offset, queue_offset, now_ms = half.commit_log_offset, half.queue_offset, half.store_timestamp
        again = PendingTransaction(
            offset, queue_offset, offset, queue_offset, half.producer_group, topic, queue_id, half.tags_code(), now_ms, now_ms
        )
        self.table._pending[offset] = again
        return EndDecision(EndAction.COMMIT, again)

    patches.replace(f"{_MESSAGES}.decide", every_commit_wins)


@planted_bug(
    needs="power failure that tears the write of the two",
    breaks=Promise.ORDER_HAS_CREDIT,
    noticed_by="tests/unit/server/transactions/test_states.py::test_each_verb_leads_a_pending_transaction_where_the_table_says_and_appends_what_it_says",
    seed=351,
)
def op_message_first(patches: Patches) -> None:
    """The op message that closes a half message is appended before the committed message, not after it."""

    def commit(self: Any, transaction: PendingTransaction, now_ms: int, reason: str | None = None) -> int:
        half = self._recent.take(transaction.stored_at, transaction.stored_queue_offset) or self._bridge.read(transaction)
        self._end(transaction, State.COMMITTED, now_ms, reason)
        appended = self._bridge.append(transitions.committed(half, transaction), now_ms)
        self.outcomes[transaction.topic].committed(now_ms - transaction.begun_ms)
        return int(appended.end_position)

    patches.replace(f"{_MESSAGES}.commit", commit)


@planted_bug(
    needs="a sync or write that fails while a COMMIT is on its way to the disk",
    breaks=Promise.ORDER_HAS_CREDIT,
    noticed_by="tests/unit/transaction/test_pending.py::test_a_decision_is_taken_back_if_it_did_not_reach_the_disk",
    seed=18,
)
def taken_back_and_forgotten(patches: Patches) -> None:
    """When the records of a decision do not reach the disk, the transaction is not pending again."""
    target = "rocketmq_broker.transaction.pending:PendingTransactions._undo"
    undo = patches.original(target)

    def _undo(self: Any, change: Any) -> None:
        undo(self, change)
        if change.kind is _Kind.ENDED:
            del self._pending[change.transaction.commit_log_offset]

    patches.replace(target, _undo)


@planted_bug(
    needs="a store that refuses everything when a COMMIT comes",
    breaks=Promise.ORDER_HAS_CREDIT,
    noticed_by="tests/unit/server/transactions/test_transactional_messages.py::test_a_store_that_refuses_writes_refuses_the_decision_and_keeps_the_transaction",
    seed=18,
)
def closed_before_stored(patches: Patches) -> None:
    """A COMMIT leaves the table of pending transactions before the store has taken its message."""

    def commit(self: Any, transaction: PendingTransaction, now_ms: int, reason: str | None = None) -> int:
        half = self._recent.take(transaction.stored_at, transaction.stored_queue_offset) or self._bridge.read(transaction)
        offset = transaction.commit_log_offset
        del self.table._pending[offset]
        self._bridge.append(transitions.committed(half, transaction), now_ms)
        self.table._pending[offset] = transaction
        end_position = self._end(transaction, State.COMMITTED, now_ms, reason)
        self.outcomes[transaction.topic].committed(now_ms - transaction.begun_ms)
        return int(end_position)

    patches.replace(f"{_MESSAGES}.commit", commit)


@planted_bug(
    needs="a consumer that dies with pulled messages in its hands",
    breaks=Promise.OFFSET_BEHIND_WORK,
    noticed_by="tests/unit/server/pulling/test_pull_processor.py::test_a_pull_commits_what_was_handled_not_what_it_asks_for",
    seed=29,
)
def pull_offset_committed(patches: Patches) -> None:
    """A pull commits the offset from which it reads, not the one up to which the consumer has handled messages."""
    target = "rocketmq_broker.server.pulling.pull_processor:PullProcessor.pull"
    answer = patches.original(target)

    def pull(self: Any, connection: Connection, command: RemotingCommand) -> bytes | None:
        header = command.decode_header(PullMessageRequestHeader)
        if header.sys_flag & pull_sysflag.COMMIT_OFFSET:
            self._commits.advance(header.consumer_group, header.topic, header.queue_id, header.queue_offset)
        frame: bytes | None = answer(self, connection, command)
        return frame

    patches.replace(target, pull)


@planted_bug(
    needs="a backlog of more messages than one pull takes",
    breaks=Promise.ORDER_HAS_CREDIT,
    noticed_by="tests/unit/store/test_message_store.py::test_a_pull_stops_at_either_limit_but_brings_at_least_one",
    seed=177,
)
def rest_passed_over(patches: Patches) -> None:
    """A pull by tag that reaches its limit of messages goes on after all units that it read, not after the delivered ones."""
    target = "rocketmq_broker.store.queues.pull:_choose"
    choose = patches.original(target)

    def _choose(units: Any, max_messages: int, max_bytes: int, tags_codes: frozenset[int] | None) -> Any:
        wanted, _ = choose(units, max_messages, max_bytes, tags_codes)
        return wanted, len(units) // UNIT_SIZE

    patches.replace(target, _choose)
