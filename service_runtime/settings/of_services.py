"""The settings of services that serve and consume, and of their migrations."""

from types import new_class
from typing import Annotated, Any, Self, TypeVar

from pydantic import AfterValidator, Field, SecretStr, model_validator
from pydantic_settings import SettingsConfigDict

from rocketmq_broker.client import IllegalConfiguration, name_server_addresses
from service_runtime.settings.common import DatabaseSettings, HttpSettings, ServingDatabaseSettings, refuse_removed

D = TypeVar("D", bound=DatabaseSettings)


def _name_servers(text: str) -> str:
    try:
        name_server_addresses(text)
    except IllegalConfiguration as error:
        raise ValueError(str(error)) from None
    return text


class ServiceSettings(ServingDatabaseSettings, HttpSettings):
    """The settings of a service that serves and consumes: a database, an address to listen on, and name servers."""

    namesrv_addr: Annotated[str, AfterValidator(_name_servers)] = Field(
        "127.0.0.1:9876", min_length=1, validation_alias="NAMESRV_ADDR", description="name servers, host:port;host:port"
    )

    @model_validator(mode="after")
    def _refuse_what_was_removed(self) -> Self:
        """Refuses the removed setting GRPC_ENDPOINTS. A service that ignored it would silently connect to another broker."""
        name = str(type(self).model_fields["database_url"].validation_alias).replace("DATABASE_URL", "GRPC_ENDPOINTS")
        refuse_removed({name: "and name the name servers in NAMESRV_ADDR"})
        return self


def database_at(path: str) -> Any:
    """Returns the field `database_url`. Its default is a SQLite file with this path."""
    url = f"sqlite:///{path}"
    return Field(SecretStr(url), description=f"sqlite:///path or postgresql://user:password@host/name; default: {url}")


def migration_settings(database_settings: type[D], program: str) -> type[D]:
    """Returns the settings class of `python -m PROGRAM migrate`: the database's settings, with the command's --help."""
    database = program.replace("_service", " database")
    text = f"""Migrate the {database} to this program's version, print the result, and exit.

    Exit status: 0 if the database has that version, 1 if it could not be migrated, 2 for an invalid setting.
    """
    config = SettingsConfigDict(cli_prog_name=f"python -m {program} migrate")
    namespace = {"__doc__": text, "__module__": database_settings.__module__, "model_config": config}
    made: type[D] = new_class("MigrationSettings", (database_settings,), exec_body=lambda body: body.update(namespace))
    return made
