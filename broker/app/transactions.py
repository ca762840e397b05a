"""The parts that transactions are made of, tied together."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from broker.app.opened_store import OpenedStore
from broker.config import BrokerSettings
from broker.remoting.connection import Connection
from broker.server.clients.producer_groups import ProducerGroups
from broker.server.durability.group_commit import GroupCommit
from broker.server.topics.topic_table import TopicTable
from broker.server.transactions.check_back import CheckBack
from broker.server.transactions.transaction_log import TransactionLog
from broker.server.transactions.transaction_notes import TransactionNotes
from broker.server.transactions.transaction_processor import TransactionProcessor
from broker.server.transactions.transaction_recovery import recover_transactions
from broker.store import DamagedStore
from broker.store.tables.config_file import ConfigFile
from broker.transaction.check_counts import FILE_NAME, check_counts_from_json
from broker.transaction.check_policy import CheckPolicy
from broker.transaction.checks_in_flight import ChecksInFlight

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Transactions:
    """What the rest of the broker uses of them."""

    log: TransactionLog
    processor: TransactionProcessor
    check_back: CheckBack
    notes: TransactionNotes
    checks_in_flight: ChecksInFlight[Connection]


def build_transactions(
    settings: BrokerSettings,
    store: OpenedStore,
    group_commit: GroupCommit,
    topic_table: TopicTable,
    producer_groups: ProducerGroups,
    clock: Callable[[], int],
    expiry_clock: Callable[[], int],
) -> Transactions:
    """Finds out which transactions are pending, and builds what deals with them. Raises StoreError, OSError."""
    policy = CheckPolicy(
        transaction_timeout_ms=settings.transaction_time_out,
        check_interval_ms=settings.transaction_check_interval,
        check_max=settings.transaction_check_max,
        file_reserved_ms=settings.file_reserved_time * 3_600_000,
    )
    counts_file = ConfigFile(store.messages.config.config_directory / FILE_NAME)
    counts = read_check_counts(counts_file)
    recovered = recover_transactions(store.messages, store.consumer_offsets, policy, clock(), counts)
    log = TransactionLog(store.messages, recovered, policy, topic_table)
    if log.complete(recovered, clock()):
        group_commit.appended()
    checks_in_flight: ChecksInFlight[Connection] = ChecksInFlight()
    processor = TransactionProcessor(
        log=log,
        store=store.messages,
        group_commit=group_commit,
        checks_in_flight=checks_in_flight,
        reject_transaction_message=settings.reject_transaction_message,
        broker_host=settings.broker_ip1,
        clock=clock,
    )
    check_back = CheckBack(
        log=log,
        store=store.messages,
        producers=producer_groups,
        checks_in_flight=checks_in_flight,
        appended=group_commit.appended,
        clock=clock,
        expiry_clock=expiry_clock,
    )
    notes = TransactionNotes(
        log=log,
        store=store.messages,
        checks_in_flight=checks_in_flight,
        consumer_offsets=store.consumer_offsets,
        counts_file=counts_file,
    )
    return Transactions(log, processor, check_back, notes, checks_in_flight)


def read_check_counts(counts_file: ConfigFile) -> dict[int, int]:
    """How often each transaction was checked; nothing if the file is damaged: that costs a few checks, and no start."""
    try:
        return counts_file.read(check_counts_from_json)
    except DamagedStore as error:
        logger.warning("how often transactions were checked is not known any more: %s", error)
        return {}
