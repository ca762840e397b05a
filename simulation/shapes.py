"""The settings of a simulated world, which stand in its plan's shape."""

from __future__ import annotations

from typing import Final

SHAPE: Final[dict[str, str]] = {
    "brokers": "brokers: 1, or 2 (broker-a, broker-b)",
    "order_services": "order services that share one database: orders-1 to orders-3",
    "credit_services": "credit services that share one database: credits-1, credits-2",
    "workers": "workers that take tasks from Redis",
    "credits_by_celery": "whether credits are entered by tasks; otherwise by the consumer itself",
    "has_inventory": "whether the inventory service takes part",
    "database_on_disk": "whether the databases lie on the world's disk; otherwise in memory",
    "flush_sync": "whether the broker syncs each message before it answers (SYNC_FLUSH)",
    "check_interval_s": "seconds between the broker's looks for open transactions",
    "check_immunity_s": "age in seconds from which the broker asks for a transaction's outcome",
    "check_max": "how often the broker asks",
    "payment_deadline_s": "how long an order to be paid later waits",
    "consumer_batch": "messages that a consumer handles together",
    "order_limit_cents": "an order above it fails in its local transaction",
}
"""The settings of a world, by name, each with what it says."""
