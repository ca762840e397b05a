"""Access control: the account files, the check of each request, and operators' changes (RocketMQ's module acl in the broker)."""

from rocketmq_broker.server.access.access_control import AccessControl
from rocketmq_broker.server.access.account_files import AccountFiles
from rocketmq_broker.server.access.acl_processor import AclProcessor, NoAclProcessor

__all__ = ["AccessControl", "AccountFiles", "AclProcessor", "NoAclProcessor"]
