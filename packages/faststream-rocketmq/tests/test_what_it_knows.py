"""Tests that the FastStream broker imports only `rocketmq_broker.client`.

The test broker may also import `rocketmq_broker.testing`.
"""

import ast
from pathlib import Path

import pytest

from tests.parsed import parsed

PACKAGE = Path(__file__).resolve().parents[1] / "faststream_rocketmq"


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")), ids=lambda path: path.name)
def test_a_module_imports_the_public_client_alone(path: Path) -> None:
    modules = {node.module or "" for node in ast.walk(parsed(path)) if isinstance(node, ast.ImportFrom)}
    ours = {module for module in modules if module.startswith("rocketmq_broker")}
    assert ours <= {"rocketmq_broker.client"} | ({"rocketmq_broker.testing"} if path.name == "testing.py" else set())
