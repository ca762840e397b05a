"""The command `doctor`. It works with Apache's brokers, too."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from rocketmq_broker import __version__
from rocketmq_broker.admin.broker_requests.brokers import BrokerAddress, find_brokers
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.admin.errors import AdminError
from rocketmq_broker.admin.health.advice import unused_tls
from rocketmq_broker.admin.health.broker_health import examine_broker, subject_of
from rocketmq_broker.admin.health.connected_clients import examine_clients
from rocketmq_broker.admin.health.consumer_groups import examine_groups
from rocketmq_broker.admin.health.finding import HealthFinding, fine
from rocketmq_broker.admin.health.name_servers import examine_name_servers
from rocketmq_broker.admin.health.store_check import examine_store
from rocketmq_broker.admin.health.versions import ProgramVersion, far_apart, version_text
from rocketmq_broker.admin.options import AsJson, BrokerAddr, NameServers, now_ms, target_of
from rocketmq_broker.admin.output.numbers import counted
from rocketmq_broker.admin.output.printing import echo, print_objects
from rocketmq_broker.admin.running import REFUSED, run_with_remoting
from rocketmq_broker.admin.session import Target
from rocketmq_broker.protocol.codes import CURRENT_VERSION, CURRENT_VERSION_NAME
from rocketmq_broker.remoting.client import RemotingClient

_PYTHON: Final = ".".join(map(str, sys.version_info[:3]))

Store = Annotated[
    Path | None,
    typer.Option("--store", metavar="PATH", help="Also check this store (storePathRootDir) on the disk, without changing it."),
]


def doctor(
    context: typer.Context,
    store: Store = None,
    as_json: AsJson = False,
    namesrv_addr: NameServers = None,
    broker_addr: BrokerAddr = None,
) -> None:
    """Check the health of name servers and brokers, and print advice. The exit code is 1 if there are problems."""
    target = target_of(context, namesrv_addr, broker_addr)
    findings: list[HealthFinding] = [_this_tool(), *unused_tls(os.environ)]

    async def work(remoting: RemotingClient) -> list[AdminError]:
        findings.extend(await _examine(remoting, target))
        return []

    if store is not None:
        findings.extend(examine_store(store, now_ms()))
    run_with_remoting(work)
    if as_json:
        print_objects(findings)
    else:
        _print(findings)
    if any(finding.is_wrong for finding in findings):
        raise typer.Exit(REFUSED)


def _this_tool() -> HealthFinding:
    what = f"rocketmq-admin {__version__}, Python {_PYTHON}, uses the protocol of {CURRENT_VERSION_NAME}."
    return fine("this tool", what, version=version_text(CURRENT_VERSION))


async def _examine(remoting: RemotingClient, target: Target) -> list[HealthFinding]:
    findings: list[HealthFinding] = []
    brokers: list[BrokerAddress]
    name_servers: list[ProgramVersion] = []
    is_remote = False
    if target.broker_addr is not None:
        brokers = await find_brokers(remoting, namesrv_addr=None, broker_addr=target.broker_addr)
    else:
        findings, brokers, name_servers, is_remote = await examine_name_servers(remoting, target.namesrv_addr)
    for broker in brokers:
        requests = BrokerRequests(remoting, broker.address)
        found = await examine_broker(requests, broker, is_remote=is_remote, clock_ms=now_ms)
        findings += found.findings
        if found.version is not None:
            findings += far_apart(found.version, name_servers)
            findings += await examine_clients(subject_of(broker), requests)
            findings += await examine_groups(subject_of(broker), requests, now_ms())
    return findings


def _print(findings: Sequence[HealthFinding]) -> None:
    subject = None
    for finding in findings:
        if finding.subject != subject:
            subject = finding.subject
            echo(f"{subject[0].upper()}{subject[1:]}:")
        echo(f"  {'WRONG' if finding.is_wrong else 'fine '}  {finding.what}")
        if finding.what_to_do is not None:
            echo(f"         {finding.what_to_do}")
    count = sum(finding.is_wrong for finding in findings)
    echo(f"{counted(count, 'problem')} found." if count else "No problems found.")
