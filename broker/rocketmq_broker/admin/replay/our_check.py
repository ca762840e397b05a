"""Plays this broker's check on a table of pending transactions, with the rules that the broker itself uses."""

from rocketmq_broker.message import properties as props
from rocketmq_broker.message import sysflag
from rocketmq_broker.transaction.checking.check_policy import CheckPolicy
from rocketmq_broker.transaction.decision import (
    CheckAction,
    EndAction,
    EndDecision,
    EndRequest,
    GroupState,
    decide_check,
    decide_end,
)
from rocketmq_broker.transaction.pending import PendingTransactions
from rocketmq_broker.transaction.pending_transaction import PendingTransaction, RecordOffsets
from rocketmq_broker.transaction.states import State

_GROUP = "producer"
_TOPIC = b"orders"
_ONLINE = GroupState(is_online=True, can_be_asked=True, owes_answer=False)
_BITS = {"COMMIT": sysflag.TRANSACTION_COMMIT_TYPE, "ROLLBACK": sysflag.TRANSACTION_ROLLBACK_TYPE}
_MAX_AT_ONCE = 256


class OurTransactions:
    """This broker's half topic, op topic and table of pending transactions. Only the queue offsets of records are kept."""

    def __init__(self, policy: CheckPolicy) -> None:
        self._policy = policy
        self.table = PendingTransactions(check_interval_ms=policy.check_interval_ms)
        self.halves = self.ops = 0

    def prepare(self, now_ms: int, immunity_s: int | None) -> int:
        """Appends a half message, and adds it to the table. Returns its offset in the half topic."""
        offset = self.halves
        encoded = b"" if immunity_s is None else props.encode({props.CHECK_IMMUNITY_TIME_IN_SECONDS: str(immunity_s)})
        due_ms = self._policy.first_check_due(now_ms, encoded)
        self.table.add(PendingTransaction(offset, offset, offset, offset, _GROUP, _TOPIC, 0, None, now_ms, due_ms))
        self.halves += 1
        return offset

    def end(self, half_offset: int, decision: str) -> EndDecision:
        """Handles a COMMIT or ROLLBACK. Appends an op message unless the decision is refused."""
        decided = decide_end(self.table, EndRequest(_BITS[decision], half_offset, half_offset, _GROUP))
        if decided.transaction is not None:
            self._close(decided.transaction, State.COMMITTED if decided.action is EndAction.COMMIT else State.ROLLED_BACK)
        return decided

    def check(self, now_ms: int) -> list[tuple[int, CheckAction, int]]:
        """Handles the due transactions. Returns a tuple of half offset, action and number of check-backs for each of them."""
        done = []
        for transaction in self.table.due_times.take_due(now_ms, _MAX_AT_ONCE):
            action = decide_check(transaction, now_ms, self._policy, _ONLINE)
            if action is CheckAction.CHECK_BACK:
                transaction.checks += 1
            elif action in (CheckAction.DISCARD, CheckAction.SKIP):
                self._close(transaction, State.DISCARDED)
            done.append((transaction.queue_offset, action, transaction.checks))
        return done

    def _close(self, transaction: PendingTransaction, state: State) -> None:
        self.table.end(transaction, state, RecordOffsets(self.ops, self.ops))
        self.ops += 1
