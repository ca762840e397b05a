"""deploy/kubernetes runs the same programs as docker-compose.yml, with the same settings, secrets, limits and networks."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
NOT_THERE = {"secrets", "demo", "spark-master", "spark-worker", "reconciliation"}
"""The container that makes secrets, for which the page has a command, and what runs once to judge."""
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
SERVICES = {name: service for name, service in COMPOSE.items() if name not in NOT_THERE}
SHARES = dict(line.split("=") for line in COMPOSE["secrets"]["command"])

Resource = dict[str, Any]


def resources(*kinds: str) -> Iterator[Resource]:
    for file in sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml")):
        yield from (one for one in yaml.safe_load_all(file.read_text()) if one["kind"] in kinds)


WORKLOADS = {one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in resources("Deployment", "StatefulSet")}
each_workload = pytest.mark.parametrize("name", sorted(WORKLOADS))


def container_of(name: str) -> Resource:
    (container,) = WORKLOADS[name]["containers"]
    return dict(container)


def test_it_runs_the_services_of_docker_compose() -> None:
    assert WORKLOADS.keys() == SERVICES.keys()


@each_workload
def test_image_and_command_are_the_same(name: str) -> None:
    command = SERVICES[name].get("command")
    assert container_of(name)["image"] == SERVICES[name]["image"]
    assert container_of(name).get("command") == (command and [word.replace("$$", "$") for word in command])


@each_workload
def test_settings_are_the_same_but_for_those_of_a_dot_env_file(name: str) -> None:
    fixed = {key: value for key, value in SERVICES[name].get("environment", {}).items() if "${" not in value}
    given = {one["name"]: one["value"] for one in container_of(name).get("env", ())}
    assert {key: value for key, value in given.items() if key != "PGDATA"} == fixed


@each_workload
def test_it_sees_only_its_own_secrets(name: str) -> None:
    (volume,) = [volume for volume in WORKLOADS[name]["volumes"] if volume["name"] == "secrets"]
    assert [item["key"] for item in volume["secret"]["items"]] == SHARES[name].split(",")
    assert [item["path"] for item in volume["secret"]["items"]] == SHARES[name].split(",")


@each_workload
def test_memory_and_time_to_stop_are_the_same(name: str) -> None:
    memory = SERVICES[name]["mem_limit"].replace("m", "Mi").replace("g", "Gi")
    grace = SERVICES[name].get("stop_grace_period", "30s")
    assert container_of(name)["resources"]["limits"]["memory"] == memory
    assert f"{WORKLOADS[name]['terminationGracePeriodSeconds']}s" == grace


@each_workload
def test_it_is_as_restricted(name: str) -> None:
    restricted = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    assert container_of(name)["securityContext"] == restricted
    assert WORKLOADS[name]["securityContext"]["runAsNonRoot"]
    assert not WORKLOADS[name]["enableServiceLinks"]


def test_who_reaches_whom_is_the_same() -> None:
    def callers(name: str) -> set[str] | None:
        networks = set(SERVICES[name]["networks"])
        return (
            None
            if "outside" in networks
            else {one for one in SERVICES if one != name and networks & {*SERVICES[one]["networks"]}}
        )

    deny, *policies = (one["spec"] for one in resources("NetworkPolicy"))
    assert (deny["podSelector"], deny.get("ingress")) == ({}, None)
    served = {one["metadata"]["name"] for one in resources("Service")}
    found = {}
    for policy in policies:
        (rule,) = policy["ingress"]
        peers = rule.get("from")
        app = policy["podSelector"]["matchLabels"]["app"]
        found[app] = peers and {peer["podSelector"]["matchLabels"]["app"] for peer in peers}
        ports = {port["containerPort"] for port in container_of(app)["ports"]}
        assert {port["port"] for port in rule["ports"]} == ports
    assert found == {name: callers(name) for name in served}


@pytest.mark.parametrize("service", list(resources("Service")), ids=lambda service: service["metadata"]["name"])
def test_a_service_leads_to_the_ports_of_its_pods(service: Resource) -> None:
    name = service["metadata"]["name"]
    assert service["spec"]["selector"] == {"app": name}
    ports = [port["containerPort"] for port in container_of(name)["ports"]]
    assert [port["port"] for port in service["spec"]["ports"]] == ports


def test_the_page_makes_each_file_that_a_config_map_has() -> None:
    page = (ROOT / "deploy" / "kubernetes" / "README.md").read_text()
    files = {Path(file).name for file in re.findall(r"--from-file=(\S+)", page) if (ROOT / file).is_file()}
    manifests = "".join(file.read_text() for file in (ROOT / "deploy" / "kubernetes").glob("*.yaml"))
    assert files == set(re.findall(r"subPath: (\S+?),", manifests)) | {"10-roles.sh"}
