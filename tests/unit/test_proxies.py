"""Proxy settings of the shell do not affect connections from our programs to services on this machine."""

import ast
from pathlib import Path

import pytest

from service_runtime.starting.start import exempt_loopback_from_proxies
from tests.parsed import parsed

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "broker",
    "demo",
    "pipelines",
    "service_runtime",
    "order_service",
    "credit_service",
    "inventory_service",
    "tutorials/recipes",
)
ASKING = {"get", "post", "put", "patch", "delete", "head", "options", "request", "stream", "Client", "AsyncClient"}
LOOPBACK = "localhost,127.0.0.1,::1"


def called(node: ast.AST) -> str:
    """Returns the name of the function that a node calls, such as `httpx.get`, or an empty text."""
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


def is_direct(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and any(
        keyword.arg == "trust_env" and isinstance(keyword.value, ast.Constant) and keyword.value.value is False
        for keyword in node.keywords
    )


def requests_of(package: str) -> list[tuple[str, ast.AST]]:
    nodes = ((path, node) for path in (ROOT / package).rglob("*.py") for node in ast.walk(parsed(path)))
    return [(f"{path.relative_to(ROOT)}: {called(node)}", node) for path, node in nodes if called(node)]


@pytest.mark.parametrize("package", PACKAGES)
def test_each_request_by_httpx_goes_straight_to_its_service(package: str) -> None:
    asked = [(place, node) for place, node in requests_of(package) if place.partition(": httpx.")[2] in ASKING]
    assert [place for place, node in asked if not is_direct(node)] == []
    assert asked or package not in ("demo", "pipelines", "tutorials/recipes")


@pytest.mark.parametrize("package", PACKAGES)
def test_no_request_is_made_by_a_library_that_always_follows_the_shell(package: str) -> None:
    """`urllib.request` and `requests` use HTTP_PROXY, and callers forget to disable it."""
    assert [place for place, _ in requests_of(package) if place.endswith(("urlopen", "build_opener", "requests.get"))] == []


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({}, LOOPBACK),
        ({"NO_PROXY": ".example"}, f".example,{LOOPBACK}"),
        ({"no_proxy": "db, localhost"}, "db,localhost,127.0.0.1,::1"),
        ({"NO_PROXY": "shadowed", "no_proxy": "counts"}, f"counts,{LOOPBACK}"),
        ({"NO_PROXY": "*"}, "*"),
    ],
)
def test_loopback_joins_what_the_shell_exempts(given: dict[str, str], made: str) -> None:
    environment = {**given, "HTTP_PROXY": "http://proxy:3128"}
    exempt_loopback_from_proxies(environment)
    assert environment == {"HTTP_PROXY": "http://proxy:3128", "NO_PROXY": made, "no_proxy": made}
    exempt_loopback_from_proxies(environment)
    assert environment["NO_PROXY"] == made
