"""Access control: accounts, their permissions, a request's signature (RocketMQ's module acl). Pure: no file, no socket.

`rocketmq_broker.acl.plain_acl_text` reads and writes plain_acl.yml. Who needs no accounts imports neither it nor YAML.
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
