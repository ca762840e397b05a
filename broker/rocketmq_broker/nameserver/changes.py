"""Restricts which clients may change a name server's data. In RocketMQ any client may change it, for example to hide a topic."""

import ipaddress
from typing import Final

from rocketmq_broker.acl.remote_address import RemoteAddresses
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Guard, RequestRefused

CHANGES: Final = frozenset(
    {
        RequestCode.PUT_KV_CONFIG,
        RequestCode.DELETE_KV_CONFIG,
        RequestCode.DELETE_TOPIC_IN_NAMESRV,
        RequestCode.WIPE_WRITE_PERM_OF_BROKER,
        RequestCode.ADD_WRITE_PERM_OF_BROKER,
    }
)
"""The codes of operators' requests that change data. LiveBrokers checks the registrations of brokers instead."""


def guard_of_changes(decide: Guard) -> Guard:
    """Returns a guard that calls `decide` for requests that change data, and admits all other requests."""

    def guard(connection: Connection, command: RemotingCommand) -> None:
        if command.code in CHANGES:
            decide(connection, command)

    return guard


def from_addresses(trusted: RemoteAddresses | None) -> Guard:
    """Returns a guard that admits requests from this machine and from trusted addresses."""

    def guard(connection: Connection, command: RemotingCommand) -> None:
        ip = connection.peer_ip
        if _is_loopback(ip) or (trusted is not None and trusted.match(ip)):
            return
        remark = (
            f"{RequestCode(command.code).name} is not allowed from {ip}: "
            "run the tool on the name server's machine, or add the address to adminAddresses in its settings"
        )
        raise RequestRefused(ResponseCode.NO_PERMISSION, remark)

    return guard


def _is_loopback(ip: str) -> bool:
    try:
        address = ipaddress.ip_address(ip)
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback
