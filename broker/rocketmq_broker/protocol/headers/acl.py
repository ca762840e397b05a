"""Accounts: the headers of the requests by which operators see and change them."""

from rocketmq_broker.protocol.command_header import CommandHeader


class CreateAccessConfigRequestHeader(CommandHeader):
    """UPDATE_AND_CREATE_ACL_CONFIG."""

    access_key: str
    secret_key: str | None = None
    white_remote_address: str | None = None
    admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: str | None = None
    """`topicA=DENY,topicB=SUB`."""
    group_perms: str | None = None


class DeleteAccessConfigRequestHeader(CommandHeader):
    """DELETE_ACL_CONFIG."""

    access_key: str


class UpdateGlobalWhiteAddrsConfigRequestHeader(CommandHeader):
    """UPDATE_GLOBAL_WHITE_ADDRS_CONFIG."""

    global_white_addrs: str
    """Several joined by commas."""
    acl_file_full_path: str | None = None


class GetBrokerAclConfigResponseHeader(CommandHeader):
    """GET_BROKER_CLUSTER_ACL_INFO."""

    version: str
    """Of the default file: a DataVersion in JSON."""
    all_acl_file_version: str
    """By path, in JSON."""
    broker_name: str
    broker_addr: str
    cluster_name: str
