"""Logging of our processes: one line an event, safe from names that strangers choose, and bounded for each kind of line."""

from rocketmq_broker.logs.handler import BoundedHandler, log_to_stderr
from rocketmq_broker.logs.line_formatter import LONGEST_LINE, LineFormatter

__all__ = ["LONGEST_LINE", "BoundedHandler", "LineFormatter", "log_to_stderr"]
