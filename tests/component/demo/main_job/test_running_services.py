"""Tests of the variables that name running services, and of the errors for missing ones."""

from pathlib import Path

import pytest

from demo.books import ShopBooks
from demo.errors import DemoError
from demo.main_job.running_services import services_of

DATABASES = {"ORDER_DATABASE_URL": "postgresql+psycopg://orders@db/orders", "CREDIT_DATABASE_URL": "sqlite:////credits.db"}


def test_what_the_environment_lacks_is_named() -> None:
    with pytest.raises(
        DemoError, match="--compose requires the environment variables ORDER_DATABASE_URL and CREDIT_DATABASE_URL"
    ):
        services_of({})
    with pytest.raises(DemoError, match="--compose requires the environment variables CREDIT_DATABASE_URL"):
        services_of({"ORDER_DATABASE_URL": "sqlite:///x"})


def test_a_password_comes_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("p@ss:/%#\n")
    services = services_of({**DATABASES, "ORDER_DATABASE_PASSWORD_FILE": str(tmp_path / "password")})
    assert services.order_database_url == "postgresql+psycopg://orders:p%40ss%3A%2F%25%23@db/orders"
    assert services.credit_database_url == "sqlite:////credits.db"
    assert services.order_url == "http://127.0.0.1:8080"
    assert "p%40ss" not in repr(services)


@pytest.mark.parametrize("name", ["ORDER_DATABASE_PASSWORD_FILE", "ORDER_API_KEY_FILE"])
def test_a_file_that_is_not_there_is_named_with_its_variable(name: str) -> None:
    with pytest.raises(DemoError, match=f"{name}: cannot read /absent: No such file or directory"):
        services_of({**DATABASES, name: "/absent"})


def test_the_key_of_the_order_service_comes_from_its_file_and_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("a key\n")
    services = services_of({**DATABASES, "ORDER_API_KEY_FILE": str(tmp_path / "key")})
    assert services.api_key == "a key"
    assert "a key" not in repr(services)
    assert services_of(DATABASES).api_key == ""


def test_a_store_without_a_commit_log_is_named(tmp_path: Path) -> None:
    with pytest.raises(DemoError, match=f"BROKER_STORE: {tmp_path} is not a broker's store"):
        services_of({**DATABASES, "BROKER_STORE": str(tmp_path)})
    (tmp_path / "config").mkdir()  # a broker makes the folder commitlog for its first message
    assert services_of({**DATABASES, "BROKER_STORE": str(tmp_path)}).broker_stores == (tmp_path,)


def test_a_url_that_names_no_database_is_one_sentence() -> None:
    for url in ("nonsense", "nosuchdatabase://host/name"):
        with pytest.raises(DemoError, match="invalid URL for the order database"):
            ShopBooks(url, "sqlite:///credits.db")


def test_a_database_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    books = ShopBooks(f"sqlite:///{tmp_path}/absent/orders.db", f"sqlite:///{tmp_path}/credits.db")
    with books, pytest.raises(DemoError, match=r"cannot read the database sqlite:///.*orders.db: unable to open"):
        books.placed()
