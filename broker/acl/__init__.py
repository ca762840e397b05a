"""Who may do what: accounts, their permissions, a request's signature (RocketMQ's module acl). Pure: no file, no socket.

The text of plain_acl.yml is read and written in `broker.acl.plain_acl`, apart from this: clients need neither it nor YAML.
"""

from broker.acl.access import AccessRules
from broker.acl.account import Account
from broker.acl.credentials import SessionCredentials
from broker.acl.errors import AccessDenied, AccountMistake, AclError, IllegalCredentials

__all__ = [
    "AccessDenied",
    "AccessRules",
    "Account",
    "AccountMistake",
    "AclError",
    "IllegalCredentials",
    "SessionCredentials",
]
