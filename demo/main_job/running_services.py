"""The addresses of the services of a run, their databases, and the broker's store."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from demo.asking import ask
from demo.books import ShopBooks
from demo.errors import DemoError
from service_runtime.settings.common import secret_of
from service_runtime.settings.secret_files import SecretUnusable, url_with_password

DEFAULT_ORDER_URL = "http://127.0.0.1:8080"


@dataclass(frozen=True, slots=True)
class RunningServices:
    """The addresses of the services, their databases and the broker's store. Database URLs include passwords."""

    order_url: str
    order_database_url: str = field(repr=False)
    credit_database_url: str = field(repr=False)
    broker_stores: tuple[Path, ...]
    """The brokers' stores; empty if they cannot be read."""
    environment: Mapping[str, str] = field(repr=False)
    """The environment variables with the database URLs. The reconciliation needs these variables."""
    api_key: str = field(default="", repr=False)
    """The order service's API key; empty if it has none."""


def services_of(environment: Mapping[str, str]) -> RunningServices:
    """Reads the addresses of the services from environment variables. Raises DemoError with the names of missing variables."""
    missing = [name for name in ("ORDER_DATABASE_URL", "CREDIT_DATABASE_URL") if not environment.get(name)]
    if missing:
        raise DemoError(
            f"--compose requires the environment variables {' and '.join(missing)}. `docker compose run --rm demo` sets them; "
            "without Docker, run the demo without --compose"
        )
    return RunningServices(
        environment.get("ORDER_SERVICE_URL") or DEFAULT_ORDER_URL,
        _database_url(environment, "ORDER_DATABASE"),
        _database_url(environment, "CREDIT_DATABASE"),
        _stores(environment.get("BROKER_STORE")),
        environment,
        _api_key(environment.get("ORDER_API_KEY_FILE") or ""),
    )


def check_services(services: RunningServices) -> None:
    """Raises DemoError if the order service does not respond or a database cannot be read."""
    try:
        ask("GET", f"{services.order_url}/healthz", timeout_s=30)
    except (httpx.TransportError, httpx.InvalidURL) as error:
        raise DemoError(f"the order service does not respond at {services.order_url} (ORDER_SERVICE_URL): {error}") from None
    with ShopBooks(services.order_database_url, services.credit_database_url) as books:
        books.placed()
        books.credited()


def _database_url(environment: Mapping[str, str], name: str) -> str:
    try:
        return url_with_password(environment[f"{name}_URL"], environment.get(f"{name}_PASSWORD_FILE"))
    except SecretUnusable as error:
        raise DemoError(f"{name}_PASSWORD_FILE: {error}") from None


def _api_key(path: str) -> str:
    try:
        return secret_of(path, "ORDER_API_KEY_FILE").get_secret_value()
    except SecretUnusable as error:
        raise DemoError(str(error)) from None


def _stores(path: str | None) -> tuple[Path, ...]:
    """Returns the store at the path. If the path is the folder of a cluster, returns the stores of all its brokers."""
    if not path:
        return ()
    if _is_store(Path(path)):
        return (Path(path),)
    stores = tuple(sorted(filter(_is_store, Path(path).iterdir()))) if Path(path).is_dir() else ()
    if not stores:
        raise DemoError(f"BROKER_STORE: {path} is not a broker's store: it contains neither commitlog nor config")
    return stores


def _is_store(path: Path) -> bool:
    return any((path / part).is_dir() for part in ("commitlog", "config"))
