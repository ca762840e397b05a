"""Tests the settings of a name server that runs in its own process."""

import re
import sys
from pathlib import Path

import pytest

from rocketmq_broker.nameserver.settings import NameServerSettings, SettingsMistake, load_settings
from rocketmq_broker.remoting.tls import ServerTls, TlsMode


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "namesrv.conf"
    path.write_text(text)
    return path


def test_without_a_word_it_listens_on_loopback_at_rocketmqs_port() -> None:
    assert load_settings(None) == NameServerSettings()
    assert (NameServerSettings().port, NameServerSettings().bind_address) == (9876, "127.0.0.1")


def test_a_file_says_it_under_rocketmqs_names_and_the_command_line_counts_more(tmp_path: Path) -> None:
    text = "listenPort=1\nbindAddress=0.0.0.0\nkvConfigPath=/kv.json\ntls.server.mode=disabled\nelse=1\n"
    settings = load_settings(written(tmp_path, text), {"listenPort": 2, "bindAddress": None})
    assert settings == NameServerSettings(
        port=2, bind_address="0.0.0.0", kv_config_path=Path("/kv.json"), tls=ServerTls(mode=TlsMode.DISABLED, test_mode=True)
    )


def test_the_file_of_tls_settings_counts_more_but_does_not_say_the_mode(tmp_path: Path) -> None:
    tls = tmp_path / "tls.properties"
    tls.write_text("tls.server.mode=disabled\ntls.server.certPath=/b.pem\ntls.server.keyPath=/b.key\n")
    text = f"tls.config.file={tls.as_posix()}\ntls.server.mode=enforcing\ntls.server.certPath=/a.pem\ntls.server.keyPath=/a.key\n"
    settings = load_settings(written(tmp_path, text)).tls
    assert settings == ServerTls(mode=TlsMode.ENFORCING, cert_path=Path("/b.pem"), key_path=Path("/b.key"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("listenPort=70000", "listenPort must be between 0 and 65535, not 70000"),
        ("listenPort=x", "listenPort must be"),
        ("listenPort=", "listenPort must be between 0 and 65535"),
        ("listenPort=" + "9" * 5000, "listenPort must be between 0 and 65535"),
        ("tls.config.file=a\\u0000b", "embedded null "),
        ("tls.server.mode=strict", "tls.server.mode must be one of"),
        ("tls.config.file=/no/such/file", f"{Path('/no/such/file')}: No such file"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(SettingsMistake) as caught:
        load_settings(written(tmp_path, text))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows takes the folder beside the own home for that of any user")
@pytest.mark.parametrize("name", ["kvConfigPath", "tls.server.certPath"])
def test_a_home_of_nobody_is_named(tmp_path: Path, name: str) -> None:
    mistake = re.escape(f"{name}=~nobody.at.all/file: Could not determine home directory")
    with pytest.raises(SettingsMistake, match=f"{mistake}.*$"):
        load_settings(written(tmp_path, f"{name}=~nobody.at.all/file"))


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "namesrv.conf"
    path.write_bytes(b"listenPort=\xff")
    with pytest.raises(SettingsMistake, match=r"namesrv\.conf: not a text file in UTF-8"):
        load_settings(path)


def test_a_home_is_resolved_in_the_path_of_the_kv_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    assert load_settings(written(tmp_path, "kvConfigPath=~/kv.json")).kv_config_path == tmp_path / "kv.json"


def test_addresses_from_which_operators_may_change_something_are_named(tmp_path: Path) -> None:
    path = tmp_path / "namesrv.conf"
    path.write_text("adminAddresses=10.0.0.*\n")
    trusted = load_settings(path).admin_addresses
    assert trusted is not None
    assert trusted.match("10.0.0.7")
    assert not trusted.match("10.0.1.7")
    path.write_text("adminAddresses=home\n")
    with pytest.raises(SettingsMistake, match="adminAddresses: invalid address 'home'"):
        load_settings(path)
    assert NameServerSettings().admin_addresses is None
