"""Tests of the script that creates the passwords of docker-compose.yml and the broker's accounts."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from rocketmq_broker.acl.plain_acl_text import parse_plain_acl

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
APACHE = yaml.safe_load((ROOT / "deploy/docker-compose.apache.yml").read_text())
ACCOUNTS_FILE = "plain-acl"
SHARES = {
    container: files.split(",") for container, files in (share.split("=") for share in COMPOSE["services"]["secrets"]["command"])
}
"""The files that each container gets."""
BROKERS_COPY = f"{ACCOUNTS_FILE}:plain_acl.yml"
PASSWORDS = {name for files in SHARES.values() for name in files} - {BROKERS_COPY}
SECRET_OF = {
    "operators": "operators-account",
    "order-service": "order-account",
    "credit-service": "credit-account",
    "inventory-service": "inventory-account",
    "reconciliation": "reconciliation-account",
}
"""By access key."""


def make_secrets(folder: Path) -> None:
    subprocess.run([ROOT / "deploy" / "docker" / "make-secrets", folder], check=True, capture_output=True, timeout=60)


def test_each_secret_of_the_compose_file_is_made_at_random(tmp_path: Path) -> None:
    make_secrets(tmp_path / "secrets")
    made = {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    assert made.keys() == {*PASSWORDS, ACCOUNTS_FILE}
    passwords = [made[name] for name in PASSWORDS]
    assert len(set(passwords)) == len(PASSWORDS) > 9
    assert all(re.fullmatch(r"[0-9a-f]{48}", password) for password in passwords)


def test_nobody_else_may_enter_the_folder(tmp_path: Path) -> None:
    make_secrets(tmp_path / "secrets")
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700


def test_passwords_that_are_there_stay(tmp_path: Path) -> None:
    (tmp_path / "redis").write_text("my own")
    make_secrets(tmp_path)
    before = {path.name: path.read_text() for path in tmp_path.iterdir()}
    make_secrets(tmp_path)
    assert before == {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert before["redis"] == "my own"


@pytest.mark.parametrize("name", ["redis", ACCOUNTS_FILE])
def test_empty_folders_that_docker_made_in_their_places_give_way(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    make_secrets(tmp_path)
    assert (tmp_path / name).is_file()


def test_the_brokers_accounts_have_the_secrets_and_the_fewest_permissions(tmp_path: Path) -> None:
    own = "my own: #'\"\\ {é} %s &"
    (tmp_path / "order-account").write_text(own)
    make_secrets(tmp_path)
    accounts = {one.access_key: one for one in parse_plain_acl((tmp_path / ACCOUNTS_FILE).read_text()).accounts}
    assert accounts.keys() == SECRET_OF.keys()
    for access_key, name in SECRET_OF.items():
        assert accounts[access_key].secret_key == (tmp_path / name).read_text()
    assert accounts["order-service"].secret_key == own
    permissions = {name: ({*one.topic_perms}, {*one.group_perms}) for name, one in accounts.items() if name != "operators"}
    consumed = {"orders=SUB", "order_cancellations=SUB"}
    assert permissions == {
        "order-service": (
            {"orders=PUB|SUB", "order_cancellations=PUB", "order_shortages=SUB", "credit_refusals=SUB"},
            {"order_service=SUB", "order_service_history=SUB"},
        ),
        "credit-service": ({*consumed, "credit_refusals=PUB"}, {"credit_service=SUB"}),
        "inventory-service": ({*consumed, "order_shortages=PUB"}, {"inventory_service=SUB"}),
        "reconciliation": (set(), {"TOOLS_CONSUMER=SUB"}),
    }
    assert {one.access_key for one in accounts.values() if one.admin} == {"operators"}
    assert {one.access_key for one in accounts.values() if one.auditor} == {"reconciliation"}
    defaults = {(one.default_topic_perm, one.default_group_perm) for name, one in accounts.items() if name != "reconciliation"}
    assert (accounts["reconciliation"].default_topic_perm, accounts["reconciliation"].default_group_perm) == ("SUB", "")
    assert defaults == {("", "")}


def test_accounts_that_do_not_hold_a_new_secret_are_named(tmp_path: Path) -> None:
    make_secrets(tmp_path)
    (tmp_path / "credit-account").unlink()
    done = subprocess.run([ROOT / "deploy" / "docker" / "make-secrets", tmp_path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert f"does not hold the secret in {tmp_path}/credit-account" in done.stderr
    assert (tmp_path / "credit-account").read_text() not in done.stdout + done.stderr


def test_each_container_gets_its_own_account_only() -> None:
    accounts = set(SECRET_OF.values())
    for service, definition in COMPOSE["services"].items():
        names = set(SHARES.get(service, []))
        environment = definition.get("environment", {})
        access_key = environment.get("ROCKETMQ_ACCESS_KEY")
        assert names & accounts == ({SECRET_OF[access_key]} if access_key else set()), service
        if access_key:
            assert environment["ROCKETMQ_SECRET_KEY_FILE"] == f"/run/secrets/{SECRET_OF[access_key]}"


def test_the_broker_of_compose_lets_only_accounts_in_and_finds_them_where_they_are_mounted() -> None:
    settings = dict(re.findall(r"^(\w+)=(.*)$", (ROOT / "deploy" / "docker" / "broker.conf").read_text(), re.MULTILINE))
    assert settings["aclEnable"] == "true"
    assert SHARES["broker-accounts"] == [BROKERS_COPY]
    assert f"broker-accounts:{settings['rocketmqHome']}/conf:ro" in COMPOSE["services"]["broker"]["volumes"]


def test_each_container_mounts_its_own_share_and_starts_after_it_is_there() -> None:
    services = COMPOSE["services"]
    mounted = {
        service: {volume for volume in definition.get("volumes", []) if volume.split(":")[0].endswith(("-secrets", "-accounts"))}
        for service, definition in services.items()
        if service != "secrets"
    }
    own = {service: {f"{service}-secrets:/run/secrets:ro"} for service in SHARES if service != "broker-accounts"}
    own["broker"].add("broker-accounts:/rocketmq/conf:ro")
    assert mounted == own

    def starts_after_secrets(service: str) -> bool:
        return service == "secrets" or any(map(starts_after_secrets, services[service].get("depends_on", {})))

    assert all(map(starts_after_secrets, services))


def test_each_share_has_its_files_and_no_others(tmp_path: Path) -> None:
    folder, shares = tmp_path / "secrets", tmp_path / "shares"
    for container in SHARES:
        (shares / container).mkdir(parents=True)
    command = [ROOT / "deploy" / "docker" / "make-secrets", folder, shares, *COMPOSE["services"]["secrets"]["command"]]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    (folder / "redis").write_text("my own")
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    for container, files in SHARES.items():
        expected = {each.split(":")[-1]: (folder / each.split(":")[0]).read_text() for each in files}
        assert {path.name: path.read_text() for path in (shares / container).iterdir()} == expected, container
    assert (shares / "credit-worker" / "redis").read_text() == "my own"


def test_services_that_write_ask_for_their_key_and_the_demo_brings_that_of_the_order_service() -> None:
    key_files = {
        service: value
        for service, definition in COMPOSE["services"].items()
        for name, value in definition.get("environment", {}).items()
        if name.endswith("_API_KEY_FILE")
    }
    assert key_files == {
        "order-service": "/run/secrets/order-api-key",
        "demo": "/run/secrets/order-api-key",
        "inventory-service": "/run/secrets/inventory-api-key",
    }
    for service, path in key_files.items():
        assert Path(path).name in SHARES[service]


def test_apaches_broker_finds_accounts_store_and_patience_where_ours_does() -> None:
    ours, apaches = (
        dict(re.findall(r"^(\w+)=(.*)$", (ROOT / "deploy" / "docker" / path).read_text(), re.MULTILINE))
        for path in ("broker.conf", "apache/broker.conf")
    )
    alike = {"aclEnable", "brokerName", "flushDiskType", "listenPort", "storePathRootDir"}
    alike |= {name for name in ours if name.startswith("transaction")}
    assert {name: apaches[name] for name in alike} == {name: ours[name] for name in alike}
    assert apaches["mappedFileSizeCommitLog"] == ours["mapedFileSizeCommitLog"]
    assert f"{ours['rocketmqHome']}/conf/plain_acl.yml" in (ROOT / "deploy" / "docker" / "apache" / "Dockerfile").read_text()


def test_each_service_that_asks_a_name_server_asks_apaches_where_it_runs() -> None:
    asking = {name for name, service in COMPOSE["services"].items() if "NAMESRV_ADDR" in service.get("environment", {})}
    told = {name for name, service in APACHE["services"].items() if "NAMESRV_ADDR" in service.get("environment", {})}
    assert asking == told
    assert {APACHE["services"][name]["environment"]["NAMESRV_ADDR"] for name in told} == {"name-server:9876"}


def test_every_container_is_bounded_and_has_no_privileges() -> None:
    for name, service in {**COMPOSE["services"], "name-server": APACHE["services"]["name-server"]}.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert {"mem_limit", "cpus", "pids_limit"} <= service.keys(), name
        assert "networks" in service or service["network_mode"] == "none", name
