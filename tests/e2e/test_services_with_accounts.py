"""The services as two accounts with no more permissions than they need, over TLS, and what they say without them."""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import pytest

from demo.processes import Processes
from demo.system import QUICK_CHECKS, System
from tests.certificates import Authority

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

ACCOUNTS = """
accounts:
- accessKey: order-service
  secretKey: the secret of orders
  topicPerms: [orders=PUB]
- accessKey: credit-service
  secretKey: the secret of credits
  topicPerms: [orders=SUB]
  groupPerms: [credit_service=SUB]
"""
ORDER = {"customer": "ada", "items": [{"name": "book", "quantity": 2, "price_cents": 1299}]}
PATIENCE_S = 180


@pytest.fixture
def secured(processes: Processes, tmp_path: Path) -> System:
    """Broker and services; each service's account is in its environment, its secret in a file."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "plain_acl.yml").write_text(ACCOUNTS)
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
        (system.order_service, "order-service", "the secret of orders"),
        (system.credit_service, "credit-service", "the secret of credits"),
    ):
        (tmp_path / name).write_text(f"{secret}\n")
        process.environment |= {
            "ROCKETMQ_ACCESS_KEY": name,
            "ROCKETMQ_SECRET_KEY_FILE": str(tmp_path / name),
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


def test_a_service_whose_secret_cannot_be_read_says_so_on_one_line(secured: System) -> None:
    secured.broker.start()
    secured.order_service.environment["ROCKETMQ_SECRET_KEY_FILE"] = "/no/such/secret"
    secured.order_service.spawn()
    assert secured.order_service.wait(timeout_s=120) == 1
    said = secured.order_service.output()
    assert "cannot join the producer group: ROCKETMQ_SECRET_KEY_FILE=/no/such/secret: No such file" in said
    assert "Traceback" not in said
