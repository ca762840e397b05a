"""The operators' command line, run in the test's own process against the broker of the fixture `rocketmq`."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner, Result

from rocketmq_broker.admin.__main__ import app
from rocketmq_broker.testing import SyncRocketMQ


class CommandLine:
    """Commands for one broker."""

    def __init__(self, rocketmq: SyncRocketMQ) -> None:
        self._target = ["--namesrv-addr", rocketmq.namesrv_addr]

    def said(self, *arguments: str, stdin: bytes | None = None) -> str:
        """What a command prints that succeeds."""
        result = CliRunner().invoke(app, [*self._target, *arguments], input=stdin)
        assert result.exit_code == 0, (result.output, result.exc_info)
        return result.stdout

    def rows(self, *arguments: str) -> list[dict[str, Any]]:
        """What it prints with --json."""
        rows: list[dict[str, Any]] = json.loads(self.said(*arguments, "--json"))
        return rows

    def refused(self, *arguments: str, exit_code: int = 1) -> str:
        """The sentence with which a command fails."""
        result = CliRunner().invoke(app, [*self._target, *arguments])
        assert result.exit_code == exit_code, (result.output, result.exc_info)
        return result.stderr

    def stdout_of_failure(self, *arguments: str) -> str:
        """What a command prints that ends with exit code 1, and nothing on the standard error stream."""
        result = CliRunner().invoke(app, [*self._target, *arguments])
        assert (result.exit_code, result.stderr) == (1, ""), (result.output, result.exc_info)
        return result.stdout

    def output(self, *arguments: str) -> Result:
        """All that a command prints that succeeds, on both streams."""
        result = CliRunner().invoke(app, [*self._target, *arguments])
        assert result.exit_code == 0, (result.output, result.exc_info)
        return result
