"""Tests the console's listen address and password."""

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rocketmq_broker.admin.__main__ import app
from rocketmq_broker.admin.console import ConsoleSettings, UnusableSettings, console_settings


def test_on_loopback_nobody_needs_a_password() -> None:
    assert console_settings("127.0.0.1:8088", {}) == ConsoleSettings("127.0.0.1", 8088, None)
    assert console_settings("[::1]:0", {}) == ConsoleSettings("::1", 0, None)
    assert console_settings("localhost:8088", {}).password is None


@pytest.mark.parametrize("listen", ["0.0.0.0:8088", "[::]:8088", "192.0.2.1:8088", "console.example:8088"])
def test_elsewhere_a_password_is_needed(listen: str) -> None:
    with pytest.raises(UnusableSettings, match="needs a password"):
        console_settings(listen, {})
    assert console_settings(listen, {"ROCKETMQ_CONSOLE_PASSWORD": "correct horse"}).password == "correct horse"


def test_the_password_comes_from_a_file_as_well(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("correct horse\n")
    assert console_settings("0.0.0.0:8088", {}, str(file)).password == "correct horse"
    assert console_settings("0.0.0.0:8088", {"ROCKETMQ_CONSOLE_PASSWORD_FILE": str(file)}).password == "correct horse"


def test_a_password_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    for environment, file, sentence in (
        ({"ROCKETMQ_CONSOLE_PASSWORD": "short"}, None, "at least 8 characters"),
        ({}, str(tmp_path / "missing"), "cannot read the password file"),
        ({}, str(empty), "is empty"),
        ({"ROCKETMQ_CONSOLE_PASSWORD": "correct horse"}, str(empty), "both set"),
    ):
        with pytest.raises(UnusableSettings, match=sentence):
            console_settings("127.0.0.1:8088", environment, file)


@pytest.mark.parametrize("listen", ["8088", "127.0.0.1:70000", ":8088", "127.0.0.1:http"])
def test_an_address_that_is_none_is_refused(listen: str) -> None:
    with pytest.raises(UnusableSettings, match="address must be HOST:PORT, not"):
        console_settings(listen, {})


def test_without_the_packages_of_the_extra_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rocketmq_broker.admin.console", None)
    result = CliRunner().invoke(app, ["console"])
    assert result.exit_code == 2
    assert "pip install 'rocketmq-broker[console]'" in result.stderr


def test_the_command_says_in_one_line_why_it_cannot_start() -> None:
    result = CliRunner().invoke(app, ["console", "--listen", "0.0.0.0:8088"])
    assert result.exit_code == 2
    assert result.stderr.startswith("the console on 0.0.0.0:8088 can be reached from other machines")
    assert "--password " not in CliRunner().invoke(app, ["console", "--help"]).output
