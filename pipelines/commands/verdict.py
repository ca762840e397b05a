"""The exit codes of the commands, and their errors as one line."""

import re
from collections.abc import Callable
from enum import IntEnum

import typer
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from rich.console import Console

from pipelines.errors import COULD_NOT_TELL, PipelineError, SparkFailed
from rocketmq_broker.message.text.printable import printable

MAX_REASON_LENGTH = 300


class Verdict(IntEnum):
    """The exit codes of the commands."""

    CONSISTENT = 0
    INCONSISTENT = 1
    COULD_NOT_TELL = 2


def exit_with(judge: Callable[[], bool], console: Console) -> None:
    """Exits the program with the code of `verdict_of`."""
    raise typer.Exit(verdict_of(judge, console))


def verdict_of(judge: Callable[[], bool], console: Console) -> Verdict:
    """Returns CONSISTENT if `judge` returns True, otherwise INCONSISTENT.

    If `judge` fails, prints the reason in one line and returns COULD_NOT_TELL.
    """
    try:
        return Verdict.CONSISTENT if judge() else Verdict.INCONSISTENT
    except COULD_NOT_TELL as error:
        return _could_not_tell(str(error), console)
    except (PySparkException, Py4JError) as error:
        return _could_not_tell(str(_from_spark(str(error))), console)
    except Exception as error:
        # A bug must not look like an inconsistency: Python itself would exit with 1.
        return _could_not_tell(f"{type(error).__name__}: {error}", console)


def _from_spark(text: str) -> PipelineError:
    """Returns the cause from the text of a Spark error: an error of this package, or else the last Java cause."""
    ours = re.search(r"(?:pipelines|rocketmq_commitlog)\.errors\.\w+: (.+)", text)
    if ours:
        return SparkFailed(ours.group(1))
    java_cause = re.findall(r"^(?:Caused by: |: )?[\w.$]+(?:Exception|Error): (.+)$", text, re.MULTILINE)
    return SparkFailed(java_cause[-1] if java_cause else text.strip().partition("\n")[0])


def _could_not_tell(reason: str, console: Console) -> Verdict:
    line = printable(" ".join(reason.split()), MAX_REASON_LENGTH)
    console.print(f"could not tell: {line}", style="bold red", markup=False, emoji=False, highlight=False, soft_wrap=True)
    return Verdict.COULD_NOT_TELL
