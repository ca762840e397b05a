"""Reports the dead letters of a service: their number, and the command that redelivers them."""

from typing import Final, Protocol

_COMMAND: Final = "python -m rocketmq_broker.admin dead-letters retry --group {group} --all"


class DeadLetters(Protocol):
    """The interface to the dead letters of a consumer group."""

    @property
    def group(self) -> str:
        """The name of the consumer group."""

    def count_dead_letters(self) -> int | None:
        """Returns the number of dead letters that have not been retried or dismissed; None if the brokers do not respond."""


def attention_for(dead_letters: DeadLetters) -> list[str]:
    """Returns a list with one line for operators. It is empty if there are no dead letters, or if their number is unknown."""
    count = dead_letters.count_dead_letters()
    if not count:
        return []
    command = _COMMAND.format(group=dead_letters.group)
    return [
        f"{count} messages of {dead_letters.group} are dead letters: fix what refused them, then run `{command} --dry-run` "
        "to list them, and without --dry-run to redeliver each once"
    ]
