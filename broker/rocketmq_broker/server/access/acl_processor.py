"""Handles the admin requests that list and change accounts (updateAclConfig etc. in RocketMQ's AdminBrokerProcessor)."""

import logging
from collections.abc import Callable, Mapping
from typing import Final

from rocketmq_broker.acl import AccountMistake
from rocketmq_broker.acl.account import PlainAcl
from rocketmq_broker.acl.edits import AccountUpdate, file_of, with_account, with_white_addresses, without_account
from rocketmq_broker.protocol.bodies.acl import GetBrokerClusterAclConfigResponseBody, PlainAccessConfig, versions_as_json
from rocketmq_broker.protocol.bodies.topic import DataVersion
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, ReplyTo, encode_response
from rocketmq_broker.protocol.headers.acl import (
    CreateAccessConfigRequestHeader,
    DeleteAccessConfigRequestHeader,
    GetBrokerAclConfigResponseHeader,
    UpdateGlobalWhiteAddrsConfigRequestHeader,
)
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Handler, RequestRefused
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.server.access.access_control import AccessControl, Edit
from rocketmq_broker.server.topics.identity import BrokerIdentity

_CHANGES: Final = {
    RequestCode.UPDATE_AND_CREATE_ACL_CONFIG: ResponseCode.UPDATE_AND_CREATE_ACL_CONFIG_FAILED,
    RequestCode.DELETE_ACL_CONFIG: ResponseCode.DELETE_ACL_CONFIG_FAILED,
    RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: ResponseCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED,
}

logger = logging.getLogger(__name__)


class NoAclProcessor:
    """Refuses account requests while access control is disabled. Apache's broker sends no response to such requests."""

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Returns the handlers of account requests. Each handler refuses the request."""
        codes = (*_CHANGES, RequestCode.GET_BROKER_CLUSTER_ACL_INFO, RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG)
        return dict.fromkeys(codes, self.refuse)

    def refuse(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Raises RequestRefused, because access control is disabled."""
        code = _CHANGES.get(RequestCode(command.code), ResponseCode.SYSTEM_ERROR)
        raise RequestRefused(code, "access control is disabled: set aclEnable=true in broker.conf")


class AclProcessor:
    """Lists and changes accounts. Each change is on disk and in force before the response is sent."""

    def __init__(self, *, access: AccessControl, identity: BrokerIdentity, tasks: Tasks, clock: Callable[[], int]) -> None:
        self._access = access
        self._identity = identity
        self._tasks = tasks
        self._clock = clock

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Returns the handlers of requests that list and change accounts and trusted addresses."""
        return {
            RequestCode.UPDATE_AND_CREATE_ACL_CONFIG: self.update_account,
            RequestCode.DELETE_ACL_CONFIG: self.delete_account,
            RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: self.update_white_addresses,
            RequestCode.GET_BROKER_CLUSTER_ACL_INFO: self.get_versions,
            RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG: self.get_accounts,
        }

    def update_account(self, connection: Connection, command: RemotingCommand) -> None:
        """Creates or changes an account. A new account is added to the default file."""
        header = command.decode_header(CreateAccessConfigRequestHeader)
        update = AccountUpdate(
            access_key=header.access_key,
            secret_key=header.secret_key or "",
            admin=header.admin,
            white_remote_address=header.white_remote_address,
            default_topic_perm=header.default_topic_perm or None,
            default_group_perm=header.default_group_perm or None,
            topic_perms=_split(header.topic_perms),
            group_perms=_split(header.group_perms),
        )

        def edit(files: dict[str, PlainAcl]) -> tuple[str, PlainAcl]:
            path = file_of(files, update.access_key) or str(self._access.files.default_file)
            return path, with_account(files.get(path, PlainAcl()), update, self._clock())

        self._change(connection, command, edit)

    def delete_account(self, connection: Connection, command: RemotingCommand) -> None:
        """Removes an account."""
        access_key = command.decode_header(DeleteAccessConfigRequestHeader).access_key

        def edit(files: dict[str, PlainAcl]) -> tuple[str, PlainAcl]:
            path = file_of(files, access_key)
            if path is None:
                remark = f"The accesskey[{access_key}] corresponding to accessConfig has been deleted failed."
                raise AccountMistake(remark)
            return path, without_account(files[path], access_key, self._clock())

        self._change(connection, command, edit)

    def update_white_addresses(self, connection: Connection, command: RemotingCommand) -> None:
        """Replaces the trusted addresses in the named account file, or in the default file if none is named."""
        header = command.decode_header(UpdateGlobalWhiteAddrsConfigRequestHeader)
        path = header.acl_file_full_path or str(self._access.files.default_file)
        addresses = _split(header.global_white_addrs) or ()

        def edit(files: dict[str, PlainAcl]) -> tuple[str, PlainAcl]:
            if path not in files:
                raise AccountMistake(f"{path} is not an account file; the account files are {', '.join(files)}")
            return path, with_white_addresses(files[path], addresses, self._clock())

        self._change(connection, command, edit)

    def get_versions(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with the version of each account file: the number of changes by requests, and the time of the last change."""
        versions = {path: _version(acl) for path, acl in self._access.content.items()}
        header = GetBrokerAclConfigResponseHeader(
            version=versions.get(str(self._access.files.default_file), DataVersion()).encode().decode(),
            all_acl_file_version=versions_as_json(versions),
            broker_name=self._identity.name,
            broker_addr=self._identity.address,
            cluster_name=self._identity.cluster,
        )
        return encode_response(command, ResponseCode.SUCCESS, header)

    def get_accounts(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with all accounts, without their secret keys. RocketMQ's response contains the keys."""
        content = self._access.content.values()
        body = GetBrokerClusterAclConfigResponseBody(
            global_white_addrs=[address for acl in content for address in acl.global_white_addresses],
            plain_access_configs=[
                PlainAccessConfig(
                    access_key=account.access_key,
                    white_remote_address=account.white_remote_address or None,
                    admin=account.admin,
                    default_topic_perm=account.default_topic_perm or None,
                    default_group_perm=account.default_group_perm or None,
                    topic_perms=list(account.topic_perms) or None,
                    group_perms=list(account.group_perms) or None,
                )
                for acl in content
                for account in acl.accounts
            ],
        )
        return encode_response(command, ResponseCode.SUCCESS, body=body.encode())

    def _change(self, connection: Connection, command: RemotingCommand, edit: Edit) -> None:
        reply_to = ReplyTo(command.opaque, command.serialize_type)
        failed = _CHANGES[RequestCode(command.code)]
        self._tasks.start("changing the accounts", self._carry_out(connection, reply_to, edit, failed))

    async def _carry_out(self, connection: Connection, reply_to: ReplyTo, edit: Edit, failed: ResponseCode) -> None:
        """Changes the files and sends the response. Runs as a task because disks may be slow."""
        try:
            await self._access.change(edit)
        except (AccountMistake, OSError) as error:
            logger.warning("accounts not changed: %s", error)
            connection.send(encode_response(reply_to, failed, remark=str(error)))
            return
        connection.send(encode_response(reply_to, ResponseCode.SUCCESS))


def _split(text: str | None) -> tuple[str, ...] | None:
    """Returns the parts between commas, without surrounding spaces. Returns None if `text` is None."""
    return None if text is None else tuple(part.strip() for part in text.split(",") if part.strip())


def _version(acl: PlainAcl) -> DataVersion:
    return DataVersion(timestamp=acl.timestamp_ms, counter=acl.counter)
