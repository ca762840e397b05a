"""docs/promises.md lists exactly the clients that tests run, with their versions."""

import re
import xml.etree.ElementTree as Xml
from pathlib import Path

import pytest

from tests.foreign.clients.grpc.clients import CLIENTS
from tests.foreign.clients.test_java_client import OLD_CLIENT, PLAIN_CLIENTS

ROOT = Path(__file__).resolve().parents[2]
ROWS = re.findall(r"^\| (.+?) \| (.*?) \| (.*?) \|$", (ROOT / "docs" / "promises.md").read_text(), re.MULTILINE)
RECIPES = ROOT / "tutorials" / "recipes"


def clients_in(row: str) -> set[str]:
    """Returns the clients that the row names, in the form java-5.3.3."""
    (cell,) = [clients for here, _, clients in ROWS if here == row]
    found: set[str] = set()
    language = ""
    for word, version in re.findall(r"\b(Java|Go|Python|Node)\b|\b(\d+\.\d+\.\d+)\b", cell):
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


def test_clients_of_the_recipes_in_other_languages() -> None:
    pom = Xml.parse(RECIPES / "in_java" / "pom.xml")
    maven = {"": "http://maven.apache.org/POM/4.0.0"}
    dependencies = pom.findall(".//dependency", maven)
    (java,) = [
        one.findtext("version", "", maven) for one in dependencies if one.findtext("artifactId", "", maven) == "rocketmq-client"
    ]
    (row,) = [here for here, _, _ in ROWS if here.startswith("programs in ")]
    assert clients_in(row) == {f"java-{java}", go_client_of(RECIPES / "in_go")}


@pytest.mark.parametrize("readme", ["README.md", "README.zh.md"])
def test_each_readme_leads_to_the_clients_of_rocketmq_5(readme: str) -> None:
    assert "](docs/grpc.md)" in (ROOT / readme).read_text()
