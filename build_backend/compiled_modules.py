"""Which modules of the broker a compiled build compiles with mypyc; all others stay Python. This is the one place that says so.

A module belongs here if each message passes it. tests/unit/test_compiled_modules.py checks what may not be compiled:

- a module that defines a msgspec.Struct: compiled, it would take from peers what its annotations do not allow;
- a module that has coroutines: asyncio crashes the interpreter when it formats a future of a compiled one;
- a class that an interpreted class inherits from: a compiled class forbids that;
- what users call with values of any type, and `broker.store.flush_process`, which runs as a script.
"""

from __future__ import annotations

import os

COMPILED_VARIABLE = "ROCKETMQ_BROKER_COMPILED"
"""The environment's variable that asks for a compiled build with 1."""

COMPILED_MODULES = (
    "broker.message.ids",
    "broker.message.inner_message",
    "broker.message.properties",
    "broker.message.record",
    "broker.message.sysflag",
    "broker.message.tags",
    "broker.message.topic_sysflag",
    "broker.message.topics",
    "broker.protocol.codes",
    "broker.protocol.command_codec",
    "broker.protocol.ext_fields",
    "broker.protocol.frame",
    "broker.protocol.pending",
    "broker.remoting.turn",
    "broker.server.durability.put_times",
    "broker.server.durability.waiting_answers",
    "broker.server.durability.written_batches",
    "broker.server.pulling.held_pulls",
    "broker.server.pulling.pull_processor",
    "broker.server.pulling.waiting_pulls",
    "broker.server.schedule.broker_clock",
    "broker.server.schedule.clock_of_queue",
    "broker.server.schedule.delay_levels",
    "broker.server.sending.send_destination",
    "broker.server.sending.send_processor",
    "broker.server.sending.sent_properties",
    "broker.server.statistics.flow_counter",
    "broker.server.statistics.histogram",
    "broker.server.statistics.message_flows",
    "broker.server.statistics.traffic",
    "broker.server.topics.topic_table",
    "broker.server.transactions.end_transaction_processor",
    "broker.server.transactions.topic_outcomes",
    "broker.server.transactions.transaction_bridge",
    "broker.server.transactions.transactional_messages",
    "broker.store.index.index",
    "broker.store.index.index_file",
    "broker.store.log.commit_log",
    "broker.store.log.log_scan",
    "broker.store.log.record_check",
    "broker.store.message_store",
    "broker.store.queues.consume_queue",
    "broker.store.queues.consume_queue_table",
    "broker.store.queues.pull",
    "broker.store.queues.unit_read",
    "broker.store.results",
    "broker.store.settings",
    "broker.store.store_reader",
    "broker.transaction.check_policy",
    "broker.transaction.checks_in_flight",
    "broker.transaction.copies",
    "broker.transaction.decision",
    "broker.transaction.due_times",
    "broker.transaction.ended",
    "broker.transaction.evidence",
    "broker.transaction.half_message",
    "broker.transaction.offsets",
    "broker.transaction.op_message",
    "broker.transaction.pending",
    "broker.transaction.pending_transaction",
    "broker.transaction.recent_half_messages",
    "broker.transaction.states",
    "broker.transaction.transitions",
)


def is_compiled_build() -> bool:
    """Whether the build that runs is to compile."""
    return os.environ.get(COMPILED_VARIABLE) == "1"


def compiled_paths() -> list[str]:
    """The compiled modules as paths below the folder that holds `broker`."""
    return [f"{module.replace('.', '/')}.py" for module in COMPILED_MODULES]
