"""What an account may do with a topic or a group (RocketMQ's Permission)."""

from enum import IntFlag
from typing import Final

from rocketmq_broker.acl.errors import AccountMistake


class Permission(IntFlag):
    """PUB sends, SUB consumes, DENY does neither whatever stands beside it."""

    DENY = 1
    PUB = 4
    SUB = 8

    def allows(self, needed: "Permission") -> bool:
        """Whether an account that has this may do what `needed` stands for."""
        own = self.value  # plain numbers: every request asks, and operators of flags are slow
        return not own & _DENY and own & needed.value != 0


_DENY: Final = Permission.DENY.value
_BY_TEXT: Final = {
    "DENY": Permission.DENY,
    "PUB": Permission.PUB,
    "SUB": Permission.SUB,
    "PUB|SUB": Permission.PUB | Permission.SUB,
    "SUB|PUB": Permission.PUB | Permission.SUB,
}


def parse_permission(text: str) -> Permission:
    """The permission that the text names. Raises AccountMistake; RocketMQ takes any other text for DENY without a word."""
    try:
        return _BY_TEXT[text.strip()]
    except KeyError:
        raise AccountMistake(f"{text!r} is no permission: DENY, PUB, SUB or PUB|SUB is expected") from None


def parse_named_permission(text: str) -> tuple[str, Permission]:
    """Name and permission of `topicA=PUB|SUB`. Raises AccountMistake."""
    name, separator, permission = text.partition("=")
    if not separator or not name.strip():
        raise AccountMistake(f"{text!r} is no name with its permission: topicA=SUB, for example, is expected")
    return name.strip(), parse_permission(permission)
