"""docs/promises.md and the pages of clients name exactly the clients and brokers that tests run, with their versions."""

import re
import xml.etree.ElementTree as Xml
from pathlib import Path

import pytest

from tests.foreign.clients.grpc.clients import CLIENTS
from tests.foreign.clients.test_java_client import OLD_CLIENT, PLAIN_CLIENTS
from tests.foreign.clients.test_recipes import BROKERS

ROOT = Path(__file__).resolve().parents[2]
ROWS = re.findall(r"^\| (.+?) \| (.*?) \| (.*?) \|$", (ROOT / "docs" / "promises.md").read_text(), re.MULTILINE)
RECIPES = ROOT / "tutorials" / "recipes"


def clients_in(row: str) -> set[str]:
    """Returns the clients that the row names, in the form java-5.3.3."""
    (cell,) = [clients for here, _, clients in ROWS if here == row]
    return clients_of(cell)


def clients_of(text: str) -> set[str]:
    found: set[str] = set()
    language = ""
    for word, version in re.findall(r"\b(Java|Go|Python|Node|Rust)\b|\b(\d+\.\d+\.\d+)\b", text):
        language = word.lower() or language
        found |= {f"{language}-{version}"} if version else set()
    return found


def go_client_of(module: Path) -> str:
    (version,) = re.findall(r"rocketmq-client-go/v2 v(\S+)$", (module / "go.mod").read_text(), re.MULTILINE)
    return f"go-{version}"


def test_clients_of_rocketmq_4_s_protocol() -> None:
    java = {f"java-{client.version}" for client in (*PLAIN_CLIENTS, OLD_CLIENT)}
    assert clients_in("this broker") == java | {go_client_of(ROOT / "tests" / "foreign" / "clients" / "go")}


def test_clients_of_rocketmq_5() -> None:
    assert clients_in("this broker with `--grpc-port`") == {client.name for client in CLIENTS}


def test_the_page_of_rocketmq_5_s_clients_has_a_column_for_each() -> None:
    (head,) = re.findall(r"^\| \| (Python .*) \|$", (ROOT / "docs" / "grpc.md").read_text(), re.MULTILINE)
    assert clients_of(head) == {client.name for client in CLIENTS} | {"rust-5.0.0"}  # which is run by hand


def java_client_of(module: Path) -> str:
    maven = {"": "http://maven.apache.org/POM/4.0.0"}
    dependencies = Xml.parse(module / "pom.xml").findall(".//dependency", maven)
    (java,) = [
        one.findtext("version", "", maven) for one in dependencies if one.findtext("artifactId", "", maven) == "rocketmq-client"
    ]
    return f"java-{java}"


def test_clients_and_brokers_of_the_recipes_in_other_languages() -> None:
    java, go = java_client_of(RECIPES / "in_java"), go_client_of(RECIPES / "in_go")
    ((row, brokers),) = [(here, brokers) for here, brokers, _ in ROWS if here.startswith("programs in ")]
    assert clients_in(row) == {java, go}
    assert re.findall(r"\d+\.\d+\.\d+", brokers) == [broker for broker in BROKERS if broker != "ours"]
    for recipe, client in (("in_java", java), ("in_go", go)):
        page = (RECIPES / recipe / "README.md").read_text()
        assert f"` {client.partition('-')[2]}. " in page
        assert f"on this broker and on Apache RocketMQ {' and '.join(BROKERS[1:])}." in page


def test_the_page_of_access_control_names_the_go_client() -> None:
    (said,) = re.findall(r"Its Go client: .*its newest release, (\S+), has no TLS", (ROOT / "docs" / "access.md").read_text())
    assert f"go-{said}" == go_client_of(RECIPES / "in_go")


@pytest.mark.parametrize("readme", ["README.md", "README.zh.md"])
def test_each_readme_leads_to_the_clients_of_rocketmq_5(readme: str) -> None:
    assert "](docs/grpc.md)" in (ROOT / readme).read_text()
