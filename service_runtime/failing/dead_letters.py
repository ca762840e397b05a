"""A service's report on its dead letters: their number, and the command that brings them back."""

from typing import Final, Protocol

_COMMAND: Final = "python -m rocketmq_broker.admin dead-letters retry --group {group} --all"


class DeadLetters(Protocol):
    """The port to the dead letters of a consumer group."""

    @property
    def group(self) -> str:
        """The name of the consumer group."""

    def count_dead_letters(self) -> int | None:
        """Returns how many nobody has retried or dismissed yet; None if the brokers do not answer."""


def attention_for(dead_letters: DeadLetters) -> list[str]:
    """Returns the task for a person, with the command; empty if nothing waits, or the number is unknown."""
    count = dead_letters.count_dead_letters()
    if not count:
        return []
    command = _COMMAND.format(group=dead_letters.group)
    return [
        f"{count} messages of {dead_letters.group} are dead letters: mend what refused them, then `{command} --dry-run` "
        "says what would come back, and the command without --dry-run brings it back, each once"
    ]
