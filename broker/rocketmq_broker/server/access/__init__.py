"""Implements access control: account files, the check of each request, and requests that change accounts (RocketMQ's ACL 1.0)."""

from rocketmq_broker.server.access.access_control import AccessControl
from rocketmq_broker.server.access.account_files import AccountFiles
from rocketmq_broker.server.access.acl_processor import AclProcessor, NoAclProcessor

__all__ = ["AccessControl", "AccountFiles", "AclProcessor", "NoAclProcessor"]
