"""Writes logs to standard error, one line for each event. Escapes untrusted text, and limits the number of similar lines."""

from rocketmq_broker.logs.handler import BoundedHandler, log_to_stderr
from rocketmq_broker.logs.line_formatter import MAX_LINE_LENGTH, LineFormatter

__all__ = ["MAX_LINE_LENGTH", "BoundedHandler", "LineFormatter", "log_to_stderr"]
