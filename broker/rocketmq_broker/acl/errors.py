"""The errors of accounts and of those who claim to have one."""


class AclError(Exception):
    """Base of the errors of this package."""


class AccessDenied(AclError):
    """A request that its sender may not make. The text is that of RocketMQ's PlainPermissionManager; it holds no secret."""


class AccountMistake(AclError):
    """An account or an address that cannot be used; the text names it. It holds no secret."""


class IllegalCredentials(AclError):
    """An access key without a secret key, or the reverse."""
