"""Apache's mqadmin prints the same for our broker as for Apache RocketMQ 4.9.7. Each command of a scenario is a test."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from demo.ports import free_ports
from demo.processes import Processes
from demo.system import add_broker
from tests.foreign.apache.cluster import apache_rocketmq
from tests.foreign.clients.mqadmin.bodies import QUESTIONS
from tests.foreign.clients.mqadmin.comparable import DIFFERENT, SETTINGS_OF_OUR_OWN, SETTINGS_THAT_DIFFER, comparable, settings
from tests.foreign.clients.mqadmin.scenario import COMMANDS, Place, play
from tests.foreign.clients.mqadmin.session import Mqadmin

SCENARIO_SECONDS = 600
ALIKE = tuple(name for name in COMMANDS if name not in DIFFERENT)

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.java, pytest.mark.timeout(2 * SCENARIO_SECONDS)]


@dataclass(frozen=True, slots=True)
class Played:
    """The output of each command, unchanged and without values that differ between runs, and the structure of the bodies."""

    printed: Mapping[str, str]
    comparable: Mapping[str, str]
    bodies: Mapping[str, Any]


def played(place: Place, home: Path) -> Played:
    with Mqadmin(place.namesrv_addr, home) as mqadmin:
        answers = play(place, mqadmin)
    texts = {name: comparable(COMMANDS[name], text, place) for name, text in answers.printed.items()}
    return Played(answers.printed, texts, answers.bodies)


@pytest.fixture(scope="module")
def apaches(tmp_path_factory: pytest.TempPathFactory) -> Played:
    home = tmp_path_factory.mktemp("apache")
    namesrv_port, broker_port = free_ports(2)
    ports = {"NAMESRV_PORT": str(namesrv_port), "BROKER_PORT": str(broker_port)}
    with apache_rocketmq(home, settings={"FLUSH": "SYNC_FLUSH", **ports}):
        return played(Place(f"127.0.0.1:{namesrv_port}", f"127.0.0.1:{broker_port}"), home / "mqadmin")


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Returns what mqadmin printed for our broker. Its headers are JSON; test_java_client.py has binary ones, too."""
    home = tmp_path_factory.mktemp("ours")
    namesrv_port, port = free_ports(2)
    with Processes(home / "logs") as processes:
        add_broker(processes, home, {"listenPort": str(port), "namesrvListenPort": str(namesrv_port)}).start()
        return played(Place(f"127.0.0.1:{namesrv_port}", f"127.0.0.1:{port}"), home / "mqadmin")


@pytest.mark.parametrize("name", ALIKE)
def test_mqadmin_prints_what_it_prints_of_apaches_broker(ours: Played, apaches: Played, name: str) -> None:
    assert ours.comparable[name] == apaches.comparable[name]


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_body_has_the_members_that_apaches_has(ours: Played, apaches: Played, name: str) -> None:
    assert ours.bodies[name] == apaches.bodies[name]


def test_our_settings_have_apaches_names_and_defaults(ours: Played, apaches: Played) -> None:
    our, apache = settings(ours.printed["getBrokerConfig"]), settings(apaches.printed["getBrokerConfig"])
    assert [name for name in our.keys() - apache.keys() if not SETTINGS_OF_OUR_OWN.fullmatch(name)] == []
    compared = our.keys() & apache.keys() - SETTINGS_THAT_DIFFER
    assert {name: our[name] for name in compared} == {name: apache[name] for name in compared}
    assert len(compared) > 20


def test_our_name_servers_settings_have_apaches_names_and_defaults(ours: Played, apaches: Played) -> None:
    our, apache = settings(ours.printed["getNamesrvConfig"]), settings(apaches.printed["getNamesrvConfig"])
    assert our
    for differing in ("listenPort", "kvConfigPath"):
        del our[differing]
    assert our.items() <= apache.items()


def test_a_change_of_settings_that_would_have_no_effect_is_refused(ours: Played) -> None:
    assert "fileReservedTime: cannot be changed at run time" in ours.printed["updateBrokerConfig"]
