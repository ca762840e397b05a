"""The permissions of an account on a topic or a group (RocketMQ's Permission)."""

from enum import IntFlag
from typing import Final

from rocketmq_broker.acl.errors import AccountMistake


class Permission(IntFlag):
    """The flags of a permission. PUB allows sending, SUB allows consuming. DENY forbids both and overrides the other flags."""

    DENY = 1
    PUB = 4
    SUB = 8

    def allows(self, needed: "Permission") -> bool:
        """Returns whether this permission includes `needed`."""
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
    """Returns the permission that the text names. Raises AccountMistake for an unknown text, which RocketMQ treats as DENY."""
    try:
        return _BY_TEXT[text.strip()]
    except KeyError:
        raise AccountMistake(f"invalid permission {text!r}: expected DENY, PUB, SUB or PUB|SUB") from None


def parse_named_permission(text: str) -> tuple[str, Permission]:
    """Returns the name and the permission of an entry such as `topicA=PUB|SUB`. Raises AccountMistake."""
    name, separator, permission = text.partition("=")
    if not separator or not name.strip():
        raise AccountMistake(f"invalid entry {text!r}: expected name=permission, for example topicA=SUB")
    return name.strip(), parse_permission(permission)
