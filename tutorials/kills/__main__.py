"""Plays one combination of moment and victim: `python -m tutorials.kills MOMENT VICTIM`.

Without arguments it plays all combinations and prints a table.
"""

if __name__ == "__main__":
    from rocketmq_broker.stop_signals import exit_at_once_on_ctrl_c

    exit_at_once_on_ctrl_c()

from typing import Annotated

import typer
from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from rocketmq_broker.config import ConfigError
from rocketmq_broker.stop_signals import until_interrupted
from tutorials.kills.cells import Moment, Victim
from tutorials.kills.playing import Outcome, play

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def kill(
    moment: Annotated[Moment | None, typer.Argument(help="moment of the kill; default: all")] = None,
    victim: Annotated[Victim | None, typer.Argument(help="what is killed; default: all in turn")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="NAME=VALUE of broker.conf; may be repeated")] = None,
) -> None:
    """Kills a process while an order is placed. Prints what is on disk after the kill, and what completes the order."""
    wanted = dict(_setting(text) for text in settings or [])
    moments, victims = [moment] if moment else list(Moment), [victim] if victim else list(Victim)
    try:
        outcomes = [play(one, other, settings=wanted) for one in moments for other in victims]
    except ConfigError as error:
        raise typer.BadParameter(str(error), param_hint="--set") from None
    if len(outcomes) == 1:
        print(cell_text(outcomes[0]))
    else:
        Console(width=170).print(table(outcomes))
    raise typer.Exit(0 if all(outcome.is_consistent for outcome in outcomes) else 1)


def cell_text(outcome: Outcome) -> str:
    """Returns the text about one combination of moment and victim."""
    return "\n".join(
        [
            f"killed: {outcome.victim.value}, at the moment: {outcome.moment.value}",
            f"on disk then: {_listed(outcome)}",
            f"the customer gets: {outcome.heard or 'nothing'}",
            f"finished by: {outcome.finished_by}",
            f"in the end: orders {outcome.orders}, credits {outcome.credits}",
            outcome.story,
        ]
    )


def table(outcomes: list[Outcome]) -> Table:
    """Returns a table with a row for each combination of moment and victim."""
    made = Table("moment", "killed", "on disk then", "answer", "finished by", "orders", "credits", box=MARKDOWN)
    for one in outcomes:
        on_disk = _listed(one).replace("half message", "half").replace("op message", "op")
        made.add_row(
            one.moment.value, one.victim.value, on_disk, one.heard or "nothing", one.finished_by, str(one.orders),
            str(one.credits),
        )  # fmt: skip
    return made


def _listed(outcome: Outcome) -> str:
    return ", ".join(outcome.on_disk) or "nothing"


def _setting(text: str) -> tuple[str, str]:
    name, is_one, value = text.partition("=")
    if not is_one:
        raise typer.BadParameter(f"expected NAME=VALUE, not {text!r}", param_hint="--set")
    return name, value


if __name__ == "__main__":
    with until_interrupted("Stopped: not all cells were played."):
        app()
