"""Tests one run of a command: the brokers that it addresses, the failures that end it, and its exit code."""

from collections.abc import Awaitable, Callable

import pytest
import typer

from rocketmq_broker.admin import running, session
from rocketmq_broker.admin.broker_requests.brokers import BrokerAddress, find_brokers
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.admin.errors import AdminError, CannotAsk, Refused
from rocketmq_broker.admin.running import CANNOT_ASK, REFUSED
from rocketmq_broker.admin.session import Session, Target
from rocketmq_broker.protocol.bodies.route import BrokerData, ClusterInfo
from rocketmq_broker.stop_signals import INTERRUPTED
from tests.unit.client.peers import Peer, Peers, answer, success

HERE = Target(broker_addr="a:1")


class OwnPeers(Peers):
    async def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> OwnPeers:
    """Replaces the remoting client, so that the command reaches brokers of the test."""
    peers = OwnPeers()
    monkeypatch.setattr(session, "open_remoting", lambda *_: peers)
    return peers


def exit_code(work: Callable[[Session], Awaitable[None]], target: Target = HERE) -> int:
    with pytest.raises(typer.Exit) as ended:
        running.run(target, work)
    return ended.value.exit_code


def cluster(**brokers: dict[int, str]) -> Peer:
    table = {name: BrokerData("c", name, addresses) for name, addresses in brokers.items()}
    return lambda request: success(body=ClusterInfo(broker_addr_table=table, cluster_addr_table={"c": list(table)}).encode())


def raising(error: BaseException) -> Callable[[Session], Awaitable[None]]:
    async def work(_: Session) -> None:
        raise error

    return work


def test_work_that_succeeds_ends_quietly_and_closes_its_connections(peers: OwnPeers) -> None:
    asked: list[str] = []

    async def work(session: Session) -> None:
        asked.extend(broker.address for broker in session.brokers)

    running.run(HERE, work)
    assert asked == ["a:1"]
    assert peers.is_closed


@pytest.mark.parametrize(
    ("error", "code"), [(Refused("no"), REFUSED), (CannotAsk("nobody there"), CANNOT_ASK), (KeyboardInterrupt(), INTERRUPTED)]
)
def test_what_ends_a_command_is_told_by_its_exit_code(
    peers: OwnPeers, capsys: pytest.CaptureFixture[str], error: BaseException, code: int
) -> None:
    assert exit_code(raising(error)) == code
    assert capsys.readouterr().err == (f"{error}\n" if isinstance(error, AdminError) else "")


@pytest.mark.parametrize("failures", [[Refused("x"), CannotAsk("y")], [CannotAsk("y"), Refused("x")]])
def test_of_several_failures_the_worst_is_told_and_all_are_printed(
    peers: OwnPeers, capsys: pytest.CaptureFixture[str], failures: list[AdminError]
) -> None:
    async def work(session: Session) -> None:
        session.failures.extend(failures)

    assert exit_code(work) == CANNOT_ASK
    assert sorted(capsys.readouterr().err.split()) == ["x", "y"]


async def ask_all(addresses: list[str], failing: set[str]) -> Session:
    session = Session([BrokerRequests(Peers().as_remoting(), address) for address in addresses])

    async def question(broker: BrokerRequests) -> str:
        if broker.address in failing:
            raise Refused(f"{broker.address} refuses")
        return broker.address

    answers = await session.ask_each(question)
    assert [answered for _, answered in answers] == [address for address in addresses if address not in failing]
    return session


async def test_one_of_several_brokers_that_fails_does_not_hide_the_others() -> None:
    asked = await ask_all(["a:1", "b:1"], {"a:1"})
    assert [str(failure) for failure in asked.failures] == ["a:1 refuses"]


async def test_the_failure_of_the_only_broker_is_the_commands() -> None:
    with pytest.raises(Refused, match="a:1 refuses"):
        await ask_all(["a:1"], {"a:1"})


def test_what_is_said_after_the_command_counts_more() -> None:
    before = Target(namesrv_addr="n:1")
    assert before.overridden(None, None) is before
    assert before.overridden(None, "b:1") == Target(broker_addr="b:1")
    assert before.overridden("m:1", None) == Target(namesrv_addr="m:1")


async def test_all_masters_are_asked_in_the_order_of_their_names() -> None:
    peers = Peers(n=cluster(y={0: "y:1", 1: "slave:1"}, x={0: "x:1"}, z={1: "slave:2"}))
    found = await find_brokers(peers.as_remoting(), namesrv_addr="n:1", broker_addr=None)
    assert found == [BrokerAddress("x", "x:1"), BrokerAddress("y", "y:1")]


async def test_a_broker_by_its_address_is_asked_without_any_name_server() -> None:
    found = await find_brokers(Peers().as_remoting(), namesrv_addr=None, broker_addr="x:1")
    assert found == [BrokerAddress("", "x:1")]


@pytest.mark.parametrize("address", ["x", "x:y", ":1", "x:70000"])
async def test_what_is_no_address_is_refused_by_the_options_name(address: str) -> None:
    with pytest.raises(CannotAsk, match=r"^--broker-addr: address must be HOST:PORT, not "):
        await find_brokers(Peers().as_remoting(), namesrv_addr=None, broker_addr=address)


@pytest.mark.parametrize(
    ("peer", "sentence"),
    [
        (cluster(), "no broker is registered at n:1"),
        (cluster(z={1: "slave:1"}), "no broker is registered at n:1"),
        (lambda request: success(), "no broker is registered at n:1"),
        (lambda request: success(body=b"<html>"), "cannot be decoded"),
        (lambda request: answer(3, remark="no"), "A broker listens at this address"),
    ],
)
async def test_where_no_broker_is_found_the_error_says_why(peer: Peer, sentence: str) -> None:
    with pytest.raises(CannotAsk, match=sentence):
        await find_brokers(Peers(n=peer).as_remoting(), namesrv_addr="n:1", broker_addr=None)


async def test_name_servers_that_cannot_be_meant_are_refused() -> None:
    with pytest.raises(CannotAsk, match="is a URL"):
        await find_brokers(Peers().as_remoting(), namesrv_addr="ftp://n:1", broker_addr=None)
