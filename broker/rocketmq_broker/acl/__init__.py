"""Access control with accounts, permissions and request signatures (RocketMQ's module acl). The package opens no file or socket.

`rocketmq_broker.acl.plain_acl_text` parses and formats plain_acl.yml. This package does not import that module, because it
requires PyYAML.
"""

from rocketmq_broker.acl.access import AccessRules
from rocketmq_broker.acl.account import Account
from rocketmq_broker.acl.credentials import SessionCredentials
from rocketmq_broker.acl.errors import AccessDenied, AccountMistake, AclError, IllegalCredentials

__all__ = [
    "AccessDenied",
    "AccessRules",
    "Account",
    "AccountMistake",
    "AclError",
    "IllegalCredentials",
    "SessionCredentials",
]
