"""Creates the objects of this package, and connects them to the rest of the broker."""

from collections.abc import Callable
from dataclasses import dataclass

from rocketmq_broker.message.inner_message import InnerMessage
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Dispatcher, RequestRefused
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.server.durability.group_commit import GroupCommit
from rocketmq_broker.server.parked import ParkedMessages
from rocketmq_broker.server.schedule.broker_clock import BrokerClock
from rocketmq_broker.server.transactions.check_requests import CheckRequests, Producers
from rocketmq_broker.server.transactions.check_service import MIN_SLEEP_S, CheckService
from rocketmq_broker.server.transactions.end_transaction_processor import EndTransactionProcessor
from rocketmq_broker.server.transactions.resume_processor import ResumeProcessor
from rocketmq_broker.server.transactions.transaction_admin_processor import TransactionAdminProcessor
from rocketmq_broker.server.transactions.transaction_finder import TransactionFinder
from rocketmq_broker.server.transactions.transaction_notes import CheckCountsFile, TransactionNotes, read_check_counts
from rocketmq_broker.server.transactions.transaction_recovery import recover_transactions
from rocketmq_broker.server.transactions.transactional_messages import Topics, TransactionalMessages
from rocketmq_broker.store import Appended, ConsumerOffsets, MessageStore
from rocketmq_broker.transaction.checking.check_policy import CheckPolicy
from rocketmq_broker.transaction.checking.checks_in_flight import ChecksInFlight


class NoTransactions:
    """Refuses messages that begin a transaction (rejectTransactionMessage=true)."""

    def __init__(self, broker_host: str) -> None:
        self._broker_host = broker_host

    def prepare(self, message: InnerMessage, producer_group: str, now_ms: int) -> Appended:
        """Raises RequestRefused, because the broker rejects transactional messages."""
        remark = f"the broker[{self._broker_host}] sending transaction message is forbidden"
        raise RequestRefused(ResponseCode.NO_PERMISSION, remark)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transactions:
    """The objects of this package that the rest of the broker uses."""

    messages: TransactionalMessages
    """The pending transactions. Other packages may only count and list them."""
    check_service: CheckService
    checks_in_flight: ChecksInFlight[Connection]
    notes: TransactionNotes

    def start(self, tasks: Tasks) -> None:
        """Starts the check service, and the task that saves offsets and check counts for the next start."""
        check_service = self.check_service
        tasks.when_due(
            "check-back",
            check_service.handle_due_now,
            check_service.alarm,
            rest_s=MIN_SLEEP_S,
            due_s=check_service.due_s,
        )
        tasks.start("notes of transactions", self.notes.keep())

    def needed_from(self, begun_after_ms: int) -> int | None:
        """Returns the first commit log offset that is needed by transactions that began after `begun_after_ms`.

        `begun_after_ms` is in milliseconds since the epoch. Returns None if there are no such transactions.
        """
        return self.messages.table.needed_from(begun_after_ms)


def build_transactions(
    *,
    store: MessageStore,
    consumer_offsets: ConsumerOffsets,
    counts_file: CheckCountsFile,
    topic_table: Topics,
    producers: Producers,
    parked: ParkedMessages,
    group_commit: GroupCommit,
    dispatcher: Dispatcher,
    tasks: Tasks,
    policy: CheckPolicy,
    clock: BrokerClock,
    expiry_clock: Callable[[], int],
    max_sleep_s: float,
    idle_notes_s: float,
    checks_in_flight: ChecksInFlight[Connection] | None = None,
) -> Transactions:
    """Finds the pending transactions in the store, and creates the objects of this package. Raises StoreError, OSError.

    `tasks` runs work that is too long for one turn of the event loop. `expiry_clock` is the clock for discarding transactions by
    age (ExpiryClock).
    """
    in_flight = checks_in_flight or ChecksInFlight(repeat_after_ms=policy.answer_timeout_ms, max_wait_ms=policy.check_interval_ms)
    messages = recover_transactions(store, consumer_offsets, topic_table, policy, clock(), read_check_counts(counts_file))
    if messages.appended_position:
        group_commit.appended()
    requests = CheckRequests(
        messages=messages, producers=producers, checks_in_flight=in_flight, store_host=store.config.store_host
    )
    for processor in (
        EndTransactionProcessor(messages=messages, group_commit=group_commit, checks_in_flight=in_flight, clock=clock),
        ResumeProcessor(messages=messages, store=store, parked=parked, group_commit=group_commit, tasks=tasks, clock=clock),
        TransactionAdminProcessor(
            messages=messages, finder=TransactionFinder(messages, store), producers=producers, checks_in_flight=in_flight,
            group_commit=group_commit, clock=clock,
        ),
    ):  # fmt: skip
        dispatcher.add(processor.handlers)
    dispatcher.add_disconnect_listener(requests.on_disconnected)
    group_commit.listeners.append(messages)
    clock.on_step(messages.table.clock_stepped)
    clock.on_step(in_flight.clock_stepped)
    return Transactions(
        messages=messages,
        check_service=CheckService(
            messages=messages,
            requests=requests,
            checks_in_flight=in_flight,
            appended=group_commit.appended,
            clock=clock,
            expiry_clock=expiry_clock,
            max_sleep_s=max_sleep_s,
        ),
        checks_in_flight=in_flight,
        notes=TransactionNotes(messages, store, in_flight, consumer_offsets, counts_file, idle_notes_s),
    )
