"""Logs to standard error with one line per event. Escapes untrusted text and limits the rate of each kind of line."""

from rocketmq_broker.logs.handler import BoundedHandler, log_to_stderr
from rocketmq_broker.logs.line_formatter import MAX_LINE_LENGTH, LineFormatter

__all__ = ["MAX_LINE_LENGTH", "BoundedHandler", "LineFormatter", "log_to_stderr"]
