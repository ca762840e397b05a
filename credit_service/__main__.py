"""Consumes orders and serves credits over HTTP (`python -m credit_service`). With `migrate`, only migrates the database."""

import sys

from rocketmq_broker.stop_signals import exit_at_once_on_stop_signals

exit_at_once_on_stop_signals()

from credit_service.entrypoints.process import SERVICE  # noqa: E402

sys.exit(SERVICE.main())
