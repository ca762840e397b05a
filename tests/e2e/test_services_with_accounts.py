"""The services as two accounts with no more permissions than they need, over TLS, and what they say without them."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from demo.processes import PROJECT_ROOT, Processes
from demo.system import QUICK_CHECKS, System
from tests.certificates import Authority

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

MAKE_SECRETS = PROJECT_ROOT / "deploy" / "docker" / "make-secrets"
"""It makes the accounts with which the services run on Docker."""
ORDER = {"customer": "ada", "items": [{"name": "book", "quantity": 2, "price_cents": 1299}]}
PATIENCE_S = 180


@pytest.fixture
def secured(processes: Processes, tmp_path: Path) -> System:
    """Broker and services; each service's account is in its environment, its secret in a file."""
    secrets = tmp_path / "secrets"
    subprocess.run([MAKE_SECRETS, secrets], check=True, capture_output=True, timeout=60)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "plain_acl.yml").write_text((secrets / "plain-acl").read_text())
    authority = Authority(tmp_path / "certificates")
    certificate = authority.sign("broker")
    settings = {
        **QUICK_CHECKS,
        "aclEnable": "true",
        "rocketmqHome": str(tmp_path),
        "tls.server.mode": "enforcing",
        "tls.server.certPath": str(certificate.cert_path),
        "tls.server.keyPath": str(certificate.key_path),
    }
    system = System(processes, tmp_path / "system", broker_settings=settings)
    for process, name, secret in (
        (system.order_service, "order-service", "order-account"),
        (system.credit_service, "credit-service", "credit-account"),
    ):
        process.environment |= {
            "ROCKETMQ_ACCESS_KEY": name,
            "ROCKETMQ_SECRET_KEY_FILE": str(secrets / secret),
            "ROCKETMQ_TLS_ENABLE": "true",
            "ROCKETMQ_TLS_TRUST_CERT_PATH": str(authority.cert_path),
        }
    return system


def test_an_order_becomes_a_credit_with_the_least_permissions(secured: System) -> None:
    secured.start()
    answer = httpx.post(f"{secured.order_url}/orders", json=ORDER, headers={"Idempotency-Key": "1"}, timeout=60)
    assert answer.is_success, answer.text
    deadline = time.monotonic() + PATIENCE_S
    while (credit := httpx.get(f"{secured.credit_url}/customers/ada/credit", timeout=60).json()).get("points") != 25:
        assert time.monotonic() < deadline, credit
        time.sleep(0.2)
    for url in (secured.order_url, secured.credit_url):
        health = httpx.get(f"{url}/healthz", timeout=60)
        assert health.status_code == 200, health.text
    refused = [line for line in secured.broker.output().splitlines() if "AclException" in line or "refused" in line]
    assert refused == [], "the services ask for nothing that their accounts may not ask"


def test_operators_see_and_mend_transactions_and_dead_letters_and_services_do_not(secured: System, tmp_path: Path) -> None:
    secured.broker.start()
    for command in (["pending"], ["discarded"], ["dead-letters", "list"]):
        assert ask(secured, command, "operators", tmp_path / "secrets" / "operators-account").returncode == 0, command
        looked = ask(secured, command, "reconciliation", tmp_path / "secrets" / "reconciliation-account")
        assert looked.returncode == 0, "the reconciliation may look: " + looked.stderr
    done = ask(secured, ["pending"], "order-service", tmp_path / "secrets" / "order-account")
    assert done.returncode != 0
    assert "Need admin permission" in done.stderr


def ask(system: System, command: list[str], access_key: str, secret_file: Path) -> subprocess.CompletedProcess[str]:
    """Runs the operators' tool as that account."""
    environment = {
        **system.order_service.environment,
        "ROCKETMQ_ACCESS_KEY": access_key,
        "ROCKETMQ_SECRET_KEY_FILE": str(secret_file),
    }
    words = [sys.executable, "-m", "rocketmq_broker.admin", *command]
    return subprocess.run(words, env=environment, cwd=PROJECT_ROOT, capture_output=True, text=True, timeout=120)


def test_a_service_whose_secret_cannot_be_read_says_so_on_one_line(secured: System) -> None:
    secured.broker.start()
    secured.order_service.environment["ROCKETMQ_SECRET_KEY_FILE"] = "/no/such/secret"
    secured.order_service.spawn()
    assert secured.order_service.wait(timeout_s=120) == 1
    said = secured.order_service.output()
    assert "cannot join the producer group: ROCKETMQ_SECRET_KEY_FILE=/no/such/secret: No such file" in said
    assert "Traceback" not in said
