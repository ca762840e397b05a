"""Formats log lines with their ids, as text or as JSON.

2026-11-22 12:36:00,000 WARNING order_service: the database refused it [request_id=7f3a order_id=… transaction_id=…]
{"time": "2026-11-22T12:36:00.000Z", "level": "WARNING", "logger": "order_service", "message": "…", "request_id": "7f3a"}
"""

import json
import logging
from typing import Literal

from rocketmq_broker.logs import LineFormatter
from service_runtime.observing.context import current_ids
from service_runtime.text import rfc3339

LogFormat = Literal["text", "json"]


class ContextFormatter(LineFormatter):
    """Formats a line of text that ends with the ids."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Returns the line with the ids appended."""
        ids = " ".join(f"{name}={value}" for name, value in current_ids().items())
        line = super().formatMessage(record)
        return f"{line} [{ids}]" if ids else line


class JsonFormatter(LineFormatter):
    """Formats a line as a JSON object. A traceback is one of its values."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the JSON object in one line."""
        message, *traceback = super().format(record).split("\n")
        line: dict[str, object] = {
            "time": rfc3339(int(record.created * 1000)),
            "level": record.levelname,
            "logger": record.name,
            "message": message,
            **current_ids(),
        }
        if traceback:
            line["traceback"] = "\n".join(traceback)
        return json.dumps(line)

    def __init__(self) -> None:
        super().__init__("%(message)s")


def set_log_format(log_format: LogFormat) -> None:
    """Sets the format of all log handlers of the process."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(JsonFormatter() if log_format == "json" else ContextFormatter())
