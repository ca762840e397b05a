"""Examines the name servers and their registered brokers."""

from typing import NamedTuple

from rocketmq_broker.admin.broker_requests.brokers import BrokerAddress, masters_of
from rocketmq_broker.admin.errors import CannotAsk
from rocketmq_broker.admin.health.advice import about_connection
from rocketmq_broker.admin.health.finding import HealthFinding, fine, wrong
from rocketmq_broker.admin.health.reach import is_loopback
from rocketmq_broker.admin.health.versions import ProgramVersion, too_old, version_text
from rocketmq_broker.client.errors import ClientError
from rocketmq_broker.client.instance.calls import ask
from rocketmq_broker.client.instance.name_servers import TIMEOUT_MS, NameServers, name_server_addresses
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.errors import ProtocolError
from rocketmq_broker.remoting.client import RemotingClient


class NameServersFound(NamedTuple):
    """The findings about all name servers."""

    findings: list[HealthFinding]
    masters: list[BrokerAddress]
    """The masters registered at any name server."""
    versions: list[ProgramVersion]
    """The versions of the name servers that answered."""
    are_remote: bool
    """Whether all name servers run on other machines, according to their addresses."""


async def examine_name_servers(remoting: RemotingClient, namesrv_addr: str | None) -> NameServersFound:
    """Examines each name server. Raises CannotAsk for an invalid address."""
    try:
        addresses = name_server_addresses(namesrv_addr)
    except ClientError as error:
        raise CannotAsk(str(error)) from None
    findings: list[HealthFinding] = []
    masters: dict[BrokerAddress, None] = {}
    versions: list[ProgramVersion] = []
    for address in addresses:
        subject = f"name server {address}"
        try:
            known = masters_of(await NameServers((address,), remoting).cluster_info())
            answer = await ask(remoting, address, RequestCode.GET_BROKER_CLUSTER_INFO, timeout_ms=TIMEOUT_MS)
        except ClientError as error:
            usual = f"Start a name server at {address}, or remove it from NAMESRV_ADDR."
            findings.append(wrong(subject, str(error), about_connection(error) or usual))
        except ProtocolError as error:
            what = f"It sent an invalid response: {error}."
            findings.append(wrong(subject, what, f"Find out which program listens at {address}."))
        else:
            findings += [_registrations(subject, address, known, answer.version), *too_old(subject, answer.version)]
            versions.append(ProgramVersion(subject, answer.version))
            masters |= dict.fromkeys(known)
    are_remote = not any(is_loopback(address) for address in addresses)
    return NameServersFound(findings, list(masters), versions, are_remote)


def _registrations(subject: str, address: str, known: list[BrokerAddress], number: int) -> HealthFinding:
    version = version_text(number)
    if not known:
        what_to_do = f"Start a broker with namesrvAddr={address}; a running one registers within 30 seconds."
        return wrong(subject, "It answers, but no broker is registered.", what_to_do, version=version)
    names = ", ".join(f"{broker.name} at {broker.address}" for broker in known)
    return fine(subject, f"It answers and uses the protocol of {version}. Registered brokers: {names}.", version=version)
