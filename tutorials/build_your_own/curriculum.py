"""The twelve stages of the course in order, with the settings of the broker in each stage."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tutorials.build_your_own.stages import (
    bind_and_answer,
    check_back,
    commit_delivers,
    commit_log,
    consume_queue,
    half_message_hidden,
    maximum_and_discard,
    one_outcome,
    pull,
    recovery_after_kill,
    rollback,
    send,
)
from tutorials.build_your_own.tester.trial import Play

FOLDER: Final = Path(__file__).parent

SLOW_CHECKS: Final[Mapping[str, str]] = MappingProxyType(
    {"transactionTimeOut": "60000", "transactionCheckInterval": "60000", "transactionCheckMax": "15"}
)
"""Settings with waits that are so long that no check-back is due during a stage."""


def quick_checks(check_max: int) -> Mapping[str, str]:
    """Returns settings with short waits before check-backs. The broker sends at most `check_max` check-backs per transaction."""
    times = str(check_back.TIMEOUT_MS)
    return MappingProxyType(
        {"transactionTimeOut": times, "transactionCheckInterval": times, "transactionCheckMax": str(check_max)}
    )


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of the course: a text, the checks, and the broker's settings."""

    number: int
    title: str
    name: str
    """The name of the stage's text (stages/NAME.md) and of its module (stages/NAME.py)."""
    play: Play
    settings: Mapping[str, str] = field(default_factory=lambda: SLOW_CHECKS)
    """The stage's settings in broker.conf, in addition to the settings that all stages share."""

    @property
    def text(self) -> Path:
        """The path of the stage's text."""
        return FOLDER / "stages" / f"{self.name}.md"


STAGES: Final = (
    Stage(1, "Bind and answer", "bind_and_answer", bind_and_answer.play),
    Stage(2, "Send", "send", send.play),
    Stage(3, "Pull", "pull", pull.play),
    Stage(4, "Commit log", "commit_log", commit_log.play),
    Stage(5, "Consume queue", "consume_queue", consume_queue.play),
    Stage(6, "Half message hidden", "half_message_hidden", half_message_hidden.play),
    Stage(7, "COMMIT", "commit_delivers", commit_delivers.play),
    Stage(8, "ROLLBACK", "rollback", rollback.play),
    Stage(9, "Check-back", "check_back", check_back.play, quick_checks(15)),
    Stage(
        10, "Maximum and discard", "maximum_and_discard", maximum_and_discard.play, quick_checks(maximum_and_discard.CHECK_MAX)
    ),
    Stage(11, "Recovery after kill", "recovery_after_kill", recovery_after_kill.play, quick_checks(15)),
    Stage(12, "One outcome", "one_outcome", one_outcome.play),
)
