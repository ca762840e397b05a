"""Searches for anomalies of each approach, and prints a Markdown page: `python -m tutorials.race.searching`."""

if __name__ == "__main__":
    from rocketmq_broker.stop_signals import exit_at_once_on_ctrl_c

    exit_at_once_on_ctrl_c()

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from rocketmq_broker.stop_signals import until_interrupted
from tutorials.race.entries import find_way
from tutorials.race.searching.finding import Anomaly, FoundAnomaly, SearchedWay, search
from tutorials.race.ways import WAYS

_HEAD = """# What a search finds of each way

[The race](../tutorials/ways-to-lose-money/README.md) runs each way under ten chosen faults.
Here a seed chooses the faults.
Each world is a world of [`@explore`](testing.md#a-test-in-many-worlds) with one way and twenty orders.
Its programs are the order process, the credit process and Redis, which loses its tasks when it is killed.
The points where a process may die, and where the order database may refuse, are those of the race.
One order in twenty is slow: its local transaction takes up to 12 s longer.
The race's own check compares both databases at the end, independently of way and faults.
"two outcomes" is a rule of each explored world: no transaction has a COMMIT and a ROLLBACK.
The world ends there, before databases are compared.

A cell shows the first seed with this result, the share of worlds with it, and the faults of the smallest plan that still has it.
"doubled" counts orders that a consumer *without* a unique key would credit twice. Each way that sends messages needs that key.

"""


def main(
    seeds: Annotated[int, typer.Option(min=1, help="number of worlds for each way")] = 300,
    write: Annotated[Path | None, typer.Option(help="file for the page", dir_okay=False)] = None,
) -> None:
    """Searches the simulated runs of seeds 1, 2, … for anomalies of each way, and prints the page."""
    page = (
        f"{_HEAD}{table(search(WAYS, range(1, seeds + 1)))}\n    .venv/bin/python -m tutorials.race.searching --seeds {seeds}\n"
    )
    print(page)
    if write is not None:
        write.write_text(page)


def table(searched: Iterable[SearchedWay]) -> str:
    """Returns the results as a Markdown table."""
    lines = [f"| way | worlds | {' | '.join(anomaly.value for anomaly in Anomaly)} |", f"| --- | --- |{len(Anomaly) * ' --- |'}"]
    for one in searched:
        found = {anomaly.anomaly: anomaly for anomaly in one.anomalies}
        cells = [_cell(found.get(anomaly), one.worlds) for anomaly in Anomaly]
        lines.append(f"| {find_way(WAYS, one.way).title} | {one.worlds} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(found: FoundAnomaly | None, worlds: int) -> str:
    if found is None:
        return "never"
    enough = ", ".join(f"`{fault}`" for fault in found.enough) or "no fault"
    return f"seed {found.first_seed}; {100 * found.worlds / worlds:.0f} %; {enough}"


if __name__ == "__main__":
    with until_interrupted("Stopped: no page was written."):
        typer.run(main)
