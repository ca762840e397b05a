"""Tests the options of commands. `options.txt` lists the options of each command in the order of `--help`."""

from collections.abc import Iterator
from pathlib import Path

from typer.core import TyperOption
from typer.main import get_group

from pipelines.commands.command_line import application

COMMANDS = get_group(application).commands


def options() -> Iterator[str]:
    for command in ("reconcile", "messages", "repair", "watch"):
        yield command
        for option in COMMANDS[command].params:
            assert isinstance(option, TyperOption)
            names = "/".join([*option.opts, *option.secondary_opts]) + (" ..." if option.multiple else "")
            least = "" if option.min is None else f" [at least {option.min}]"
            place = f" [{option.envvar}]" if option.envvar else ""
            yield f"  {names} = {option.default}: {option.help}{least}{place}"


def test_each_command_has_the_options_that_users_know() -> None:
    assert list(options()) == (Path(__file__).parent / "options.txt").read_text().splitlines()
