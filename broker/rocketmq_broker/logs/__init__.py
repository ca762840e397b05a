"""How our processes log: one line an event, whatever a stranger put into a name, and no flood of lines of one kind."""

from rocketmq_broker.logs.handler import BoundedHandler, log_to_stderr
from rocketmq_broker.logs.line_formatter import LineFormatter

__all__ = ["BoundedHandler", "LineFormatter", "log_to_stderr"]
