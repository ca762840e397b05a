"""The services with Apache's own Python client of RocketMQ 5: from an order to its credit, with a COMMIT lost on the way."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from demo.ports import free_ports
from demo.processes import Processes
from demo.system import QUICK_CHECKS, System
from tests.e2e.customers import credit, place
from tests.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.fixture
def system(processes: Processes, tmp_path: Path) -> System:
    (grpc_port,) = free_ports(1)
    system = System(processes, tmp_path, broker_settings={**QUICK_CHECKS, "grpcServerPort": str(grpc_port)})
    system.order_service.environment |= {
        "ORDER_GRPC_ENDPOINTS": f"127.0.0.1:{grpc_port}",
        "ORDER_SEND_TIMEOUT_MS": "30000",
        "ORDER_FAILPOINTS_FOLDER": str(tmp_path),
        "HOME": str(tmp_path),
    }
    system.credit_service.environment |= {"CREDIT_GRPC_ENDPOINTS": f"127.0.0.1:{grpc_port}", "HOME": str(tmp_path)}
    return system


def test_a_lost_commit_is_credited_once_by_a_check_back(system: System, tmp_path: Path) -> None:
    system.start()
    assert "Clients of RocketMQ 5 connect to 127.0.0.1:" in system.broker.output()
    assert place(system, "ada").json()["transaction"]["state"] == "COMMITTED"
    (tmp_path / "lose-commit").write_text("grace")
    transaction = place(system, "grace").json()["transaction"]
    assert transaction["state"] == "COMMITTED"
    wait_until(lambda: bool(credit(system, "grace")["entries"]) and bool(credit(system, "ada")["entries"]))
    assert [len(credit(system, name)["entries"]) for name in ("ada", "grace")] == [1, 1]
    health = httpx.get(f"{system.credit_url}/healthz").json()
    assert (health["status"], health["broker"], health["queues"]) == ("ok", "ok", None)
    system.credit_service.stop()
    assert system.credit_service.log_path is not None
    assert "Traceback" not in system.credit_service.log_path.read_text()
    system.order_service.stop()
    assert system.order_service.log_path is not None
    log = system.order_service.log_path.read_text()
    assert "COMMIT_MESSAGE of transaction" in log
    assert f"check-back of transaction {transaction['transaction_id']}: COMMITTED" in log
    assert "Traceback" not in log
