"""Tests that unusual or malicious content of broker.conf is either accepted or refused with an error in one line."""

# ruff: noqa: E501

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rocketmq_broker.__main__ import main
from rocketmq_broker.app.serving import settings_text
from rocketmq_broker.config import BrokerSettings, ConfigError, load_settings
from rocketmq_broker.protocol.java_properties import parse_properties, property_line

NAMES = [field.encode_name for field in msgspec.structs.fields(BrokerSettings)]
odd_values = st.text(max_size=20) | st.sampled_from(
    ["-1", "0", "9" * 30, "9" * 5000, "1e400", "NaN", "true", "TRUE", "~nobody/x", "\\u0000", "\\u001b[2J", "\\ud800", "x\\", "a:b", "a:²",
     "h:99999", "[::1]:1", ";;", "4;5;99", "٤", "1s 2s", "²s", "9" * 9 + "d", "a:b,c:d", "é"]
)  # fmt: skip


def read(path: Path, content: bytes) -> list[str]:
    """Returns the broker's output for a broker.conf with this content, when it only prints the settings and exits."""
    path.write_bytes(content)
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        assert main(["-c", str(path), "-p"]) in (0, 2)
    lines = said.getvalue().split("\n")
    assert all(line.isprintable() for line in lines), lines
    return lines


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from([*NAMES, "unknown"]), odd_values), min_size=1, max_size=3))
def test_any_value_of_any_property_is_taken_or_refused_in_a_line(tmp_path: Path, properties: list[tuple[str, str]]) -> None:
    content = "\n".join(f"{name}={value}" for name, value in properties)
    read(tmp_path / "broker.conf", content.encode(errors="replace"))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
@example(b"listenPort=\xff")
@example(b"brokerName=\\u000a\\u001b[2J")
@example(b"\\")
@example(b"=\\u")
def test_any_bytes_are_a_file_of_properties_or_refused_in_a_line(tmp_path: Path, content: bytes) -> None:
    read(tmp_path / "broker.conf", content)


@pytest.mark.parametrize("path", ["/", "/proc/self/mem", "/nowhere/broker.conf", "x\0y", "x" * 5000])
def test_a_path_that_is_no_file_is_refused_in_a_line(path: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        load_settings(Path(path))
    assert len(str(refusal.value)) < 6000


@given(st.text(st.characters(exclude_categories=()), min_size=1))
def test_a_printed_property_is_read_as_it_was(value: str) -> None:
    if value != value.lstrip(" "):
        value = "x" + value
    line = property_line("brokerIP1", value)
    assert line[:-1].isprintable()
    read_back = parse_properties(line)["brokerIP1"]
    assert read_back.encode("utf-16", "surrogatepass") == value.encode("utf-16", "surrogatepass")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bindAddress", "\u202e"), ("bindAddress", "\ud800"), ("bindAddress", "~/.."), ("metricsPromExporterHost", "x" * 300),
        ("metricsPromExporterHost", ".."), ("storePathRootDir", "a\0b"), ("storePathCommitLog", "\ud800"), ("regionId", "a\nb"),
    ],
)  # fmt: skip
def test_a_value_that_no_host_or_path_can_have_is_refused_by_its_name(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"command line: {name}=") as refusal:
        load_settings(None, {name: value})
    assert str(refusal.value).isprintable()


def test_the_printed_settings_are_settings(tmp_path: Path) -> None:
    odd = BrokerSettings(broker_ip1="a\\\\b", region_id="é \\u0041", store_path_root_dir="/x:y=z")
    path = tmp_path / "broker.conf"
    path.write_text(settings_text(odd), encoding="utf-8")

    assert load_settings(path).settings == odd
