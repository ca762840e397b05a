"""Access control with accounts, their permissions and request signatures (RocketMQ's module acl). It opens no file and no socket.

`rocketmq_broker.acl.plain_acl_text` parses and formats plain_acl.yml. It alone needs YAML, so this package does not import it.
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
