"""Lists the modules of the broker that a compiled build compiles with mypyc. All other modules stay interpreted.

A module belongs here if every message passes through it. tests/unit/test_compiled_modules.py fails if the list contains:

- a module that defines a msgspec.Struct, because a compiled Struct would accept values that its annotations forbid;
- a module that has coroutines, because asyncio crashes the interpreter when it formats a future of a compiled coroutine;
- a module with a class that an interpreted class inherits from, because a compiled class forbids that;
- a module that users call with values of any type, or `rocketmq_broker.platform.flush_helper`, which runs as a script.
"""

import os

COMPILED_VARIABLE = "ROCKETMQ_BROKER_COMPILED"
"""The environment variable that requests a compiled build when it is set to 1."""

COMPILED_MODULES = (
    "rocketmq_broker.message.ids",
    "rocketmq_broker.message.inner_message",
    "rocketmq_broker.message.permissions",
    "rocketmq_broker.message.properties",
    "rocketmq_broker.message.record",
    "rocketmq_broker.message.sysflag",
    "rocketmq_broker.message.tags",
    "rocketmq_broker.message.topics",
    "rocketmq_broker.protocol.codes",
    "rocketmq_broker.protocol.command_codec",
    "rocketmq_broker.protocol.ext_fields",
    "rocketmq_broker.protocol.frame",
    "rocketmq_broker.protocol.pending",
    "rocketmq_broker.remoting.connections.turn",
    "rocketmq_broker.remoting.dispatcher",
    "rocketmq_broker.server.durability.arrivals",
    "rocketmq_broker.server.durability.completion",
    "rocketmq_broker.server.durability.put_times",
    "rocketmq_broker.server.pulling.held_pulls",
    "rocketmq_broker.server.pulling.pull_processor",
    "rocketmq_broker.server.schedule.broker_clock",
    "rocketmq_broker.server.schedule.clock_of_queue",
    "rocketmq_broker.server.schedule.delay_levels",
    "rocketmq_broker.server.sending.send_processor",
    "rocketmq_broker.server.sending.sent_properties",
    "rocketmq_broker.server.statistics.flow_counter",
    "rocketmq_broker.server.statistics.histogram",
    "rocketmq_broker.server.statistics.message_flows",
    "rocketmq_broker.server.statistics.traffic",
    "rocketmq_broker.server.topics.topic_table",
    "rocketmq_broker.server.transactions.end_transaction_processor",
    "rocketmq_broker.server.transactions.topic_outcomes",
    "rocketmq_broker.server.transactions.transaction_bridge",
    "rocketmq_broker.server.transactions.transactional_messages",
    "rocketmq_broker.store.backlog",
    "rocketmq_broker.store.index.index",
    "rocketmq_broker.store.index.index_file",
    "rocketmq_broker.store.log.commit_log",
    "rocketmq_broker.store.log.log_scan",
    "rocketmq_broker.store.log.record_check",
    "rocketmq_broker.store.message_store",
    "rocketmq_broker.store.queues.consume_queue",
    "rocketmq_broker.store.queues.consume_queue_table",
    "rocketmq_broker.store.queues.dispatch",
    "rocketmq_broker.store.queues.pull",
    "rocketmq_broker.store.queues.unit_files",
    "rocketmq_broker.store.queues.unit_read",
    "rocketmq_broker.store.results",
    "rocketmq_broker.store.settings",
    "rocketmq_broker.store.store_reader",
    "rocketmq_broker.store.writability",
    "rocketmq_broker.transaction.checking.check_policy",
    "rocketmq_broker.transaction.checking.checks_in_flight",
    "rocketmq_broker.transaction.copies",
    "rocketmq_broker.transaction.decision",
    "rocketmq_broker.transaction.due_times",
    "rocketmq_broker.transaction.evidence",
    "rocketmq_broker.transaction.messages.half_message",
    "rocketmq_broker.transaction.messages.offsets",
    "rocketmq_broker.transaction.messages.op_message",
    "rocketmq_broker.transaction.pending",
    "rocketmq_broker.transaction.pending_transaction",
    "rocketmq_broker.transaction.recent_half_messages",
    "rocketmq_broker.transaction.states",
    "rocketmq_broker.transaction.transitions",
)


def is_compiled_build() -> bool:
    """Returns True if ROCKETMQ_BROKER_COMPILED is 1, so that the build compiles these modules."""
    return os.environ.get(COMPILED_VARIABLE) == "1"


def compiled_paths() -> list[str]:
    """Returns the paths of the compiled modules, relative to the folder that contains `rocketmq_broker`."""
    return [f"{module.replace('.', '/')}.py" for module in COMPILED_MODULES]
