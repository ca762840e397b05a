"""Tests the names of all processes' settings, and the errors for wrong values."""

import os

import pytest
from pydantic import ValidationError
from pydantic_settings import CliApp

from credit_service import settings as credits
from inventory_service import settings as inventory
from order_service import settings as orders
from service_runtime.settings.common import NamedSettings
from service_runtime.starting.start import first_error

CLASSES: list[type[NamedSettings]] = [
    orders.OrderSettings,
    orders.MigrationSettings,
    credits.CreditSettings,
    credits.WorkerSettings,
    credits.MigrationSettings,
]
SHARED = {"NAMESRV_ADDR", "REDIS_URL", "REDIS_PASSWORD_FILE", "FAILPOINTS", "LOG_FORMAT", "TRACES_ENABLED"}


def names(settings: type[NamedSettings]) -> dict[str, str]:
    """Returns the documented name of each field."""
    return {field: str(info.validation_alias) for field, info in settings.model_fields.items()}


every_class = pytest.mark.parametrize("settings", CLASSES, ids=lambda settings: f"{settings.__module__}.{settings.__name__}")


@pytest.fixture(autouse=True)
def _without_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in [name for name in os.environ if name in SHARED or name.startswith(("ORDER_", "CREDIT_"))]:
        monkeypatch.delenv(variable)


@every_class
def test_a_setting_s_name_says_whose_it_is(settings: type[NamedSettings]) -> None:
    prefix = settings.__module__.partition("_")[0].upper() + "_"
    assert all(name.startswith(prefix) or name in SHARED for name in names(settings).values())


@every_class
def test_no_other_name_in_the_environment_counts(settings: type[NamedSettings], monkeypatch: pytest.MonkeyPatch) -> None:
    """DATABASE_URL and HTTP_HOST, which other programs use, are ignored, and so are the documented names in another case."""
    default = settings()
    for field, name in names(settings).items():
        for stray in {field, field.upper(), name.lower(), name.title()} - {name}:
            monkeypatch.setenv(stray, "7")
    assert settings() == default


@every_class
def test_no_other_flag_is_taken(settings: type[NamedSettings], capsys: pytest.CaptureFixture[str]) -> None:
    flags = {f"--{name.lower().replace('_', '-')}" for name in names(settings).values()}
    stray = {f"--{field.replace('_', '-')}" for field in names(settings)} - flags
    for flag in stray | {"--order-database", "--credit-database"}:
        with pytest.raises(SystemExit) as ended:
            CliApp.run(settings, cli_args=[flag, "7"])
        assert ended.value.code == 2
        assert f"unrecognized arguments: {flag}" in capsys.readouterr().err


@every_class
def test_help_lists_each_setting_with_what_it_means(settings: type[NamedSettings], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        CliApp.run(settings, cli_args=["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert "\n    " not in shown.partition("options:")[0].partition("\n\n")[2]
    for info in settings.model_fields.values():
        assert f"--{str(info.validation_alias).lower().replace('_', '-')}" in shown
        assert info.description


def test_the_documented_names_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORDER_HTTP_HOST", "[::1]")
    monkeypatch.setenv("ORDER_HTTP_PORT", "81")
    monkeypatch.setenv("ORDER_MIGRATE_ON_START", "false")
    settings = CliApp.run(orders.OrderSettings, cli_args=["--order-http-port", "82"])
    assert (settings.http_host, settings.http_port, settings.migrate_on_start) == ("::1", 82, False)
    assert CliApp.run(orders.OrderSettings, cli_args=["--order-migrate-on-start"]).migrate_on_start


@pytest.mark.parametrize(
    ("settings", "name", "value", "words"),
    [
        (orders.OrderSettings, "ORDER_DATABASE_URL", "orders.db", "invalid database URL"),
        (orders.MigrationSettings, "ORDER_DATABASE_URL", "mysql://ann:s3cret@db/x", "unsupported database 'mysql'"),
        (credits.WorkerSettings, "CREDIT_DATABASE_URL", "postgresql://ann:s3@cret@db/x", "more than one @"),
        (credits.CreditSettings, "CREDIT_DATABASE_URL", "sqlite://s3cret.db", "three slashes"),
        (orders.OrderSettings, "ORDER_HTTP_HOST", "", "not a host name or an address"),
        (orders.OrderSettings, "ORDER_HTTP_HOST", "http://localhost", "without http://"),
        (credits.CreditSettings, "CREDIT_HTTP_HOST", "localhost:8081", "without a port"),
        (credits.CreditSettings, "CREDIT_HTTP_HOST", "local host", "not a host name or an address"),
        (orders.OrderSettings, "ORDER_HTTP_PORT", "http", "valid integer"),
        (orders.OrderSettings, "ORDER_HTTP_PORT", "65536", "less than or equal to 65535"),
        (credits.CreditSettings, "CREDIT_HTTP_PORT", "-1", "greater than or equal to 0"),
        (orders.OrderSettings, "ORDER_HTTP_KNOWN_HOSTS", "shop.example:80", "without a port"),
        (credits.CreditSettings, "CREDIT_HTTP_KNOWN_HOSTS", "http://shop.example", "without http://"),
        (orders.OrderSettings, "NAMESRV_ADDR", "", "at least 1"),
        (orders.OrderSettings, "NAMESRV_ADDR", "localhost", "expected host:port"),
        (orders.OrderSettings, "NAMESRV_ADDR", "a:9876 b:9876", "expected host:port"),
        (credits.CreditSettings, "NAMESRV_ADDR", "a:98765", "expected host:port"),
        (credits.CreditSettings, "NAMESRV_ADDR", "a:0", "expected host:port"),
        (credits.CreditSettings, "REDIS_URL", "http://:s3cret@localhost", "redis://"),
        (credits.WorkerSettings, "REDIS_URL", "redis://:s3cret@localhost:port", "redis://"),
        (orders.OrderSettings, "FAILPOINTS", "explode", "invalid failpoint 'explode'"),
        (orders.OrderSettings, "ORDER_SEND_TIMEOUT_MS", "3s", "valid integer"),
        (orders.OrderSettings, "ORDER_DATABASE_START_TIMEOUT_S", "nan", "less than or equal to 86400"),
        (credits.WorkerSettings, "CREDIT_MAX_TRIES", "0", "greater than or equal to 1"),
        (inventory.InventorySettings, "INVENTORY_MAX_TRIES", "many", "valid integer"),
        (orders.OrderSettings, "ORDER_STOP_TIMEOUT_S", "inf", "less than or equal to 3600"),
        (orders.OrderSettings, "ORDER_HTTP_THREADS", "4", "greater than or equal to 8"),
    ],
)
def test_a_wrong_setting_is_named_with_what_is_expected_and_without_its_secret(
    settings: type[NamedSettings], name: str, value: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValidationError) as raised:
        settings()
    said = first_error(raised.value)
    assert said.startswith(f"{name}: ")
    assert words in said
    assert "s3" not in said


@pytest.mark.parametrize(
    ("settings", "name", "instead"),
    [
        (credits.CreditSettings, "CREDIT_GRPC_ENDPOINTS", "name the name servers in NAMESRV_ADDR"),
        (credits.CreditSettings, "CREDIT_TASK_TIMEOUT_S", "no message waits for a task"),
        (credits.WorkerSettings, "CREDIT_MAX_RECONSUME_TIMES", "give the worker CREDIT_MAX_TRIES"),
        (inventory.InventorySettings, "INVENTORY_CONSUMER_THREADS", "messages wait in the inbox and not in threads"),
    ],
)
def test_a_setting_that_was_removed_is_refused_with_what_takes_its_place(
    settings: type[NamedSettings], name: str, instead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "1")
    orders.OrderSettings()
    with pytest.raises(ValidationError) as raised:
        settings()
    assert first_error(raised.value).startswith(f"{name} was removed; unset it, ")
    assert instead in first_error(raised.value)


def test_orders_being_placed_leave_threads_for_other_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    assert orders.OrderSettings().placed_at_once == 32
    monkeypatch.setenv("ORDER_HTTP_THREADS", "8")
    assert orders.OrderSettings().placed_at_once == 2
    monkeypatch.setenv("ORDER_PLACING_MAX", "3")
    with pytest.raises(ValidationError) as raised:
        orders.OrderSettings()
    assert first_error(raised.value) == (
        "ORDER_PLACING_MAX must be at most 2 with ORDER_HTTP_THREADS=8, not 3: other requests need threads too"
    )
