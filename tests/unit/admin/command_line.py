"""Runs the operators' command line in the test process, against the broker of the fixture `rocketmq`."""

import json
from typing import Any

from typer.testing import CliRunner, Result

from rocketmq_broker.admin.__main__ import app
from rocketmq_broker.testing import SyncRocketMQ


class CommandLine:
    """The command line for one broker."""

    def __init__(self, rocketmq: SyncRocketMQ) -> None:
        self._target = ["--namesrv-addr", rocketmq.namesrv_addr]

    def said(self, *arguments: str, stdin: bytes | None = None) -> str:
        """Runs a command that must succeed. Returns its standard output."""
        result = CliRunner().invoke(app, [*self._target, *arguments], input=stdin)
        assert result.exit_code == 0, (result.output, result.exc_info)
        return result.stdout

    def rows(self, *arguments: str) -> list[dict[str, Any]]:
        """Runs a command with --json. Returns the rows."""
        rows: list[dict[str, Any]] = json.loads(self.said(*arguments, "--json"))
        return rows

    def refused(self, *arguments: str, exit_code: int = 1) -> str:
        """Runs a command that must fail with `exit_code`. Returns its error text."""
        result = CliRunner().invoke(app, [*self._target, *arguments])
        assert result.exit_code == exit_code, (result.output, result.exc_info)
        return result.stderr

    def stdout_of_failure(self, *arguments: str) -> str:
        """Runs a command that must fail with exit code 1 and an empty standard error. Returns its standard output."""
        result = CliRunner().invoke(app, [*self._target, *arguments])
        assert (result.exit_code, result.stderr) == (1, ""), (result.output, result.exc_info)
        return result.stdout

    def output(self, *arguments: str) -> Result:
        """Runs a command that must succeed. Returns its output on both streams."""
        result = CliRunner().invoke(app, [*self._target, *arguments])
        assert result.exit_code == 0, (result.output, result.exc_info)
        return result
