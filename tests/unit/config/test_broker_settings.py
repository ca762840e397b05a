from pathlib import Path

import pytest

from rocketmq_broker.app.serving import settings_for_tools, settings_text
from rocketmq_broker.config import BrokerSettings, ConfigError, load_settings
from rocketmq_broker.config.settings import NOT_SUPPORTED
from rocketmq_broker.config.without_effect import FIXED_VALUES, WITHOUT_EFFECT
from rocketmq_broker.protocol.java_properties import parse_properties
from rocketmq_broker.transaction.checking.check_policy import CheckPolicy


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "broker.conf"
    path.write_text(text)
    return path


def test_without_a_file_the_defaults_are_safe_ones() -> None:
    settings = load_settings(None).settings
    assert settings.flush_disk_type == "SYNC_FLUSH"
    assert settings.bind_address == "127.0.0.1"
    assert settings.broker_ip1 == "127.0.0.1"
    assert settings.name_servers == ()


def test_a_check_policy_has_the_defaults_of_the_settings() -> None:
    settings = load_settings(None).settings
    assert CheckPolicy() == CheckPolicy(
        transaction_timeout_ms=settings.transaction_time_out,
        check_interval_ms=settings.transaction_check_interval,
        answer_timeout_ms=settings.transaction_check_answer_time_out,
        check_max=settings.transaction_check_max,
        file_reserved_ms=settings.file_reserved_time * 3_600_000,
    )


def test_properties_go_by_their_names_in_rocketmq(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        brokerIP1=10.0.0.7
        listenPort=10999
        transactionTimeOut=1000
        autoCreateTopicEnable=false
        namesrvAddr=127.0.0.1:9876;127.0.0.1:9877
        mapedFileSizeConsumeQueue=6000
        """,
    )
    settings = load_settings(path).settings
    assert settings.broker_ip1 == "10.0.0.7"
    assert settings.listen_port == 10999
    assert settings.transaction_time_out == 1000
    assert settings.auto_create_topic_enable is False
    assert settings.name_servers == ("127.0.0.1:9876", "127.0.0.1:9877")
    assert settings.consume_queue_units_per_file == 300


def test_both_spellings_of_mapped_are_read(tmp_path: Path) -> None:
    assert load_settings(written(tmp_path, "mapedFileSizeCommitLog=1048576")).settings.maped_file_size_commit_log == 1048576
    assert load_settings(written(tmp_path, "mappedFileSizeCommitLog=1048576")).settings.maped_file_size_commit_log == 1048576


def test_the_command_line_wins_over_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "namesrvAddr=127.0.0.1:1")
    assert load_settings(path, {"namesrvAddr": "127.0.0.1:2"}).settings.name_servers == ("127.0.0.1:2",)


def test_an_unknown_property_is_a_warning_that_names_it(tmp_path: Path) -> None:
    path = written(tmp_path, "lisstenPort=1")
    loaded = load_settings(path)
    assert loaded.warnings == (f"{path}: unknown property lisstenPort is ignored",)
    assert loaded.settings == BrokerSettings()


def test_a_property_of_rocketmq_without_effect_here_is_said_to_be_one(tmp_path: Path) -> None:
    path = written(tmp_path, "sendMessageThreadPoolNums=4")
    assert load_settings(path).warnings == (f"{path}: sendMessageThreadPoolNums has no effect in this broker",)


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("listenPort=abc", "listenPort=abc"),
        ("listenPort=70000", "listenPort=70000"),
        ("listenPort=1", "listenPort=1"),
        ("listenPort=2", "listenPort=2"),
        ("flushDiskType=MAYBE", "flushDiskType=MAYBE"),
        ("brokerRole=SLAVE", "brokerRole=SLAVE"),
        ("autoCreateTopicEnable=perhaps", "autoCreateTopicEnable=perhaps"),
        ("messageDelayLevel=1s soon", "messageDelayLevel=1s soon"),
        ("messageDelayLevel=1s 9999999999d", "messageDelayLevel=1s 9999999999d"),
        ("deleteWhen=24", "deleteWhen=24"),
        ("namesrvAddr=here", "namesrvAddr=here"),
        ("aclEnable=true", "aclEnable=true"),
        ("tls.server.mode=strict", "tls.server.mode must be one of disabled, permissive, enforcing, not strict"),
        ("tls.enable=true\ntls.client.authServer=perhaps", "tls.client.authServer must be true or false, not perhaps"),
        ("brokerName=two words", "brokerName=two words"),
        ("maxIndexNum=1", "maxIndexNum=1"),
        ("storePathRootDir=~nobody.at.all/store", "storePathRootDir=~nobody.at.all/store"),
        ("storePathCommitLog=~nobody.at.all/log", "storePathCommitLog=~nobody.at.all/log"),
        ("aclEnable=true\nrocketmqHome=~nobody.at.all", "rocketmqHome=~nobody.at.all"),
        ("rocketmq.acl.plain.file=~nobody.at.all/acl.yml", "rocketmq.acl.plain.file=~nobody.at.all/acl.yml"),
        ("tls.server.certPath=~nobody.at.all/c.pem", "tls.server.certPath=~nobody.at.all/c.pem"),
    ],
)
def test_a_bad_value_is_one_line_that_names_the_property(tmp_path: Path, line: str, part: str) -> None:
    path = written(tmp_path, line)
    with pytest.raises(ConfigError) as raised:
        load_settings(path)
    assert str(raised.value).startswith(f"{path}: {part}")
    assert "\n" not in str(raised.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.conf: No such file"):
        load_settings(tmp_path / "nothing.conf")


def test_the_accounts_are_below_rocketmqs_home(tmp_path: Path) -> None:
    path = written(tmp_path, "aclEnable=true")
    settings = load_settings(path, environment={"ROCKETMQ_HOME": "/opt/rocketmq"}).settings
    assert settings.acl_file == Path("/opt/rocketmq/conf/plain_acl.yml")
    assert settings.acl_folder == Path("/opt/rocketmq/conf/acl")
    named = load_settings(written(tmp_path, "rocketmqHome=/srv"), environment={"ROCKETMQ_HOME": "/opt/rocketmq"}).settings
    assert named.acl_file == Path("/srv/conf/plain_acl.yml")


def test_the_file_with_the_accounts_may_be_anywhere(tmp_path: Path) -> None:
    path = written(tmp_path, "aclEnable=true\nrocketmq.acl.plain.file=/etc/accounts.yml")
    assert load_settings(path).settings.acl_file == Path("/etc/accounts.yml")


def test_settings_of_tls_may_lie_in_a_file_of_their_own(tmp_path: Path) -> None:
    tls = tmp_path / "tls.properties"
    tls.write_text("tls.server.mode=disabled\ntls.enable=true\ntls.server.certPath=/c.pem\ntls.server.keyPath=/k.pem\nother=1\n")
    loaded = load_settings(written(tmp_path, f"tls.config.file={tls}\ntls.server.certPath=/a.pem"))
    assert loaded.warnings == ()
    said = loaded.settings.tls
    assert (said["tls.server.mode"], said["tls.enable"]) == ("permissive", "False")
    assert (said["tls.server.certPath"], said["tls.server.keyPath"]) == ("/c.pem", "/k.pem")


def test_tools_are_told_the_settings_and_what_else_is_true_of_this_broker(tmp_path: Path) -> None:
    settings = load_settings(written(tmp_path, "tls.enable=true\nlistenPort=10912")).settings
    told = parse_properties(settings_for_tools(settings))
    read_by_export_configs = ("filterServerNums", "slaveReadEnable", "useTLS", "listenPort")
    assert [told[name] for name in read_by_export_configs] == ["0", "false", "true", "10912"]
    assert FIXED_VALUES.keys() <= WITHOUT_EFFECT | NOT_SUPPORTED


def test_passwords_are_not_shown(tmp_path: Path) -> None:
    text = "tls.server.certPath=/c.pem\ntls.server.keyPath=/k.pem\ntls.server.keyPassword=hidden"
    shown = settings_text(load_settings(written(tmp_path, text)).settings)
    assert "hidden" not in shown
    assert "tls.server.keyPassword=******" in shown
    assert "tls.client.keyPassword=\n" in shown
