"""The permissions of an account on a topic or a group (RocketMQ's Permission)."""

from enum import IntFlag
from typing import Final

from rocketmq_broker.acl.errors import AccountMistake


class Permission(IntFlag):
    """The flags of a permission: PUB sends, SUB consumes, DENY forbids both, also beside another flag."""

    DENY = 1
    PUB = 4
    SUB = 8

    def allows(self, needed: "Permission") -> bool:
        """Returns whether an account with this permission may do what `needed` names."""
        own = self.value  # plain numbers: this runs for every request, and flag operators are slow
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
    """Returns the permission that the text names. Raises AccountMistake; RocketMQ silently takes any other text for DENY."""
    try:
        return _BY_TEXT[text.strip()]
    except KeyError:
        raise AccountMistake(f"{text!r} is no permission: DENY, PUB, SUB or PUB|SUB is expected") from None


def parse_named_permission(text: str) -> tuple[str, Permission]:
    """Returns name and permission of `topicA=PUB|SUB`. Raises AccountMistake."""
    name, separator, permission = text.partition("=")
    if not separator or not name.strip():
        raise AccountMistake(f"{text!r} is no name with its permission: topicA=SUB, for example, is expected")
    return name.strip(), parse_permission(permission)
