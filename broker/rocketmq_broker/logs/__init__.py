"""Logging of our processes: one line an event, safe from names that strangers choose, and bounded for each kind of line."""

from rocketmq_broker.logs.handler import BoundedHandler, log_to_stderr
from rocketmq_broker.logs.line_formatter import MAX_LINE_LENGTH, LineFormatter

__all__ = ["MAX_LINE_LENGTH", "BoundedHandler", "LineFormatter", "log_to_stderr"]
