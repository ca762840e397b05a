"""Do the name servers answer, and which brokers do they know?"""

from __future__ import annotations

from broker.admin.brokers import BrokerAddress, masters_of
from broker.admin.errors import CannotAsk
from broker.admin.health.finding import Finding, fine, wrong
from broker.client.errors import ClientError
from broker.client.instance.name_servers import NameServers, name_server_addresses
from broker.protocol.errors import ProtocolError
from broker.remoting.client import RemotingClient


async def examine_name_servers(remoting: RemotingClient, namesrv_addr: str | None) -> tuple[list[Finding], list[BrokerAddress]]:
    """What is found of each name server, and the masters that any of them knows. Raises CannotAsk if an address is none."""
    try:
        addresses = name_server_addresses(namesrv_addr)
    except ClientError as error:
        raise CannotAsk(str(error)) from None
    findings: list[Finding] = []
    masters: dict[BrokerAddress, None] = {}
    for address in addresses:
        subject = f"name server {address}"
        try:
            known = masters_of(await NameServers((address,), remoting).cluster_info())
        except ClientError as error:
            findings.append(wrong(subject, str(error), f"Start a name server at {address}, or take it out of NAMESRV_ADDR."))
        except ProtocolError as error:
            what = f"It answered what cannot be understood: {error}."
            findings.append(wrong(subject, what, f"See which program listens at {address}."))
        else:
            findings.append(_knowing(subject, address, known))
            masters |= dict.fromkeys(known)
    return findings, list(masters)


def _knowing(subject: str, address: str, known: list[BrokerAddress]) -> Finding:
    if not known:
        what_to_do = f"Start a broker with namesrvAddr={address}; one that runs registers within 30 seconds."
        return wrong(subject, "It answers, but no broker is registered.", what_to_do)
    names = ", ".join(f"{broker.name} at {broker.address}" for broker in known)
    return fine(subject, f"It answers, and knows {names}.")
