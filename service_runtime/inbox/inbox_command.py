"""The command `python -m PROGRAM inbox`, which lists, retries and dismisses parked messages."""

from collections.abc import Callable
from types import new_class
from typing import Any, Final, Literal, Self

from pydantic import Field, model_validator
from pydantic_settings import CliPositionalArg, SettingsConfigDict
from sqlalchemy import Engine

from rocketmq_broker.databases.inbox import BaseInbox
from rocketmq_broker.message.text.printable import printable
from service_runtime.database.database_errors import DatabaseFailure
from service_runtime.settings.common import DatabaseSettings
from service_runtime.starting.configured_database import open_migrated
from service_runtime.starting.start import CannotStart, Command
from service_runtime.text import rfc3339

MAX_LISTED: Final = 100
"""The maximum number of messages that `list` prints."""


class InboxSettings(DatabaseSettings):
    """The arguments of the command, in addition to the database settings."""

    action: CliPositionalArg[Literal["list", "retry", "dismiss"]] = Field(
        validation_alias="action", description="list, retry or dismiss"
    )
    keys: CliPositionalArg[list[str]] = Field(
        [], validation_alias="keys", description="keys of messages, as `list` prints them; retry: all if none"
    )

    @model_validator(mode="after")
    def _require_keys(self) -> Self:
        """Refuses `dismiss` without keys, so that no message is dismissed unread."""
        if self.action == "dismiss" and not self.keys:
            raise ValueError("dismiss requires the keys of messages; run `list` to print them")
        return self


def inbox_command(
    database_settings: type[DatabaseSettings], program: str, migrations: str, inbox_of: Callable[[Engine], BaseInbox[Any]]
) -> Command[Any]:
    """Returns the command for a service's database. `inbox_of` returns the inbox in that database."""
    text = f"""List, retry or dismiss the parked messages of {program}, which failed too often.

    `retry` processes messages again, after their cause was fixed. `dismiss` keeps messages as a record without counting them.
    Exit status: 0 if it was done, 1 if the database is unavailable, 2 for invalid arguments.
    """
    config = SettingsConfigDict(cli_prog_name=f"python -m {program} inbox")
    namespace = {"__doc__": text, "__module__": database_settings.__module__, "model_config": config}
    settings_class = new_class("InboxSettings", (database_settings, InboxSettings), exec_body=lambda body: body.update(namespace))

    def work(settings: Any) -> None:
        engine = open_migrated(settings, migrations)
        try:
            print(answer_of(inbox_of(engine), settings.action, settings.keys), flush=True)
        except DatabaseFailure as error:
            raise CannotStart(str(error)) from None
        finally:
            engine.dispose()

    return Command(settings_class, work)


def answer_of(inbox: BaseInbox[Any], action: str, keys: list[str]) -> str:
    """Performs the action, and returns the lines to print. Raises DatabaseFailure."""
    if action == "retry":
        return f"{inbox.retry(keys or None)} messages are tried again"
    if action == "dismiss":
        return f"{inbox.dismiss(keys)} messages are dismissed"
    lines = [
        f"{message.key}  {message.topic} {' '.join(message.keys)}  since {rfc3339(message.received_at_ms)}, "
        f"{message.attempts} failures: {message.last_error}"
        for message in inbox.parked(MAX_LISTED)
    ]
    return "\n".join(map(printable, lines)) or "no message is parked"
