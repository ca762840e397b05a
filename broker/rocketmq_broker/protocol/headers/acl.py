"""The headers of operators' requests about accounts."""

from rocketmq_broker.protocol.command_header import CommandHeader


class CreateAccessConfigRequestHeader(CommandHeader):
    """The header of UPDATE_AND_CREATE_ACL_CONFIG."""

    access_key: str
    secret_key: str | None = None
    white_remote_address: str | None = None
    admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: str | None = None
    """Permissions of topics, such as `topicA=DENY,topicB=SUB`."""
    group_perms: str | None = None


class DeleteAccessConfigRequestHeader(CommandHeader):
    """The header of DELETE_ACL_CONFIG."""

    access_key: str


class UpdateGlobalWhiteAddrsConfigRequestHeader(CommandHeader):
    """The header of UPDATE_GLOBAL_WHITE_ADDRS_CONFIG."""

    global_white_addrs: str
    """Addresses, joined by commas."""
    acl_file_full_path: str | None = None


class GetBrokerAclConfigResponseHeader(CommandHeader):
    """The header of the response to GET_BROKER_CLUSTER_ACL_INFO."""

    version: str
    """The version of the default file, as a DataVersion in JSON."""
    all_acl_file_version: str
    """The versions of all files, as a JSON object keyed by path."""
    broker_name: str
    broker_addr: str
    cluster_name: str
