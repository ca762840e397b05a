"""The errors of access control."""


class AclError(Exception):
    """Base class of the errors of this package."""


class AccessDenied(AclError):
    """Raised for a request that is not permitted.

    The message is the same as in RocketMQ's PlainPermissionManager, but contains no secret.
    """


class AccountMistake(AclError):
    """Raised for an invalid account or address. The message describes the mistake and contains no secret."""


class IllegalCredentials(AclError):
    """Raised for credentials in which the access key or the secret key is missing."""
