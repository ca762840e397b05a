"""The shell completes the commands of rocketmq-admin."""

import pytest
from typer.testing import CliRunner

from rocketmq_broker.admin.__main__ import app


@pytest.mark.parametrize(
    ("words", "expected"),
    [("rocketmq-admin t", ["topics", "tail", "timeline"]), ("rocketmq-admin dead", ["dead-letters"])],
)
def test_a_shell_completes_the_commands(words: str, expected: list[str]) -> None:
    asked = {"_ROCKETMQ_ADMIN_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "1"}
    assert CliRunner().invoke(app, [], prog_name="rocketmq-admin", env=asked).output.split() == expected
