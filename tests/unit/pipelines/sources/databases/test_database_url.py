from pipelines.sources.databases.database_address import DatabaseAddress, Driver
from pipelines.sources.databases.database_url import parse_database_url

SECRET = "s3cret&p@ss"
WITH_SECRET = "postgresql+psycopg://shop:s3cret%26p%40ss@db.example:5433/orders"


def test_a_sqlite_url_becomes_a_read_only_file_uri() -> None:
    address = parse_database_url("sqlite:////data/my orders?.db".replace("?", "%3F"))
    assert address.driver is Driver.SQLITE
    assert address.uri.startswith("file:/data/my%20orders")
    assert address.uri.endswith("?mode=ro")


def test_a_postgresql_url_keeps_its_password_apart_and_tells_the_driver_with_signs_escaped() -> None:
    address = parse_database_url(WITH_SECRET)
    assert address.password == SECRET
    assert address.uri.endswith("&password=s3cret%26p%40ss")
    assert address.public_uri == "postgresql://shop@db.example:5433/orders?connect_timeout=10&client_encoding=UTF8"
    assert address.name == "db.example:5433/orders"


def test_a_password_among_the_parameters_is_kept_apart_too() -> None:
    address = parse_database_url("postgresql://shop@db/orders?password=hidden&sslmode=require")
    assert address.password == "hidden"
    assert "hidden" not in address.public_uri
    assert "sslmode=require" in address.public_uri


def test_neither_repr_nor_blotted_text_shows_the_password() -> None:
    address = parse_database_url(WITH_SECRET)
    assert SECRET not in repr(address)
    assert address.without_password(f"no {SECRET}\nnor s3cret%26p%40ss") == "no *** nor ***"


def test_an_address_survives_being_options() -> None:
    address = parse_database_url(WITH_SECRET)
    assert DatabaseAddress.from_options(address.to_options()) == address
