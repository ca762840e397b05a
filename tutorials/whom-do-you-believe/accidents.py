"""Corrupts rows in the order and credit databases of `make up` with SQL statements."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

ACCIDENTS = {
    # Restores the credit database from a backup that is older than bob's credit.
    "bob": [
        ("credits.db", "DELETE FROM credits WHERE customer = 'bob'"),
        ("credits.db", "DELETE FROM balances WHERE customer = 'bob'"),
    ],
    # Changes a price in both databases to 100 times its value, as a clerk does by mistake.
    "carol": [
        ("orders.db", "UPDATE orders SET total_cents = 250000 WHERE customer = 'carol'"),
        ("orders.db", "UPDATE order_items SET price_cents = 250000 WHERE order_id IN (SELECT order_id FROM orders "
                      "WHERE customer = 'carol')"),
        ("credits.db", "UPDATE credits SET amount_cents = 250000, points = 2500 WHERE customer = 'carol'"),
        ("credits.db", "UPDATE balances SET points = 2500 WHERE customer = 'carol'"),
    ],
    # Adds a bonus to a balance without a credit, as a script does that runs twice.
    "dave": [("credits.db", "UPDATE balances SET points = points + 1000 WHERE customer = 'dave'")],
    # Delays erin's credit by twenty minutes, as an outage of the credit service does.
    "erin": [("credits.db", "UPDATE credits SET created_at_ms = created_at_ms + 1200000 WHERE customer = 'erin'")],
    # Corrects carol's rows, as a clerk does who compares the message with the receipt.
    "mend-carol": [
        ("orders.db", "UPDATE orders SET total_cents = 2500 WHERE customer = 'carol'"),
        ("orders.db", "UPDATE order_items SET price_cents = 2500 WHERE order_id IN (SELECT order_id FROM orders "
                      "WHERE customer = 'carol')"),
        ("credits.db", "UPDATE credits SET amount_cents = 2500, points = 25 WHERE customer = 'carol'"),
        ("credits.db", "UPDATE balances SET points = 25 WHERE customer = 'carol'"),
    ],
}  # fmt: skip


def main(
    folder: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="folder with orders.db and credits.db")],
    names: Annotated[list[str], typer.Argument(help=", ".join(ACCIDENTS))],
) -> None:
    """Runs the accidents that are named in the arguments."""
    if unknown := set(names) - set(ACCIDENTS):
        raise typer.BadParameter(f"unknown accident {', '.join(sorted(unknown))}; choose from {', '.join(ACCIDENTS)}")
    for name in names:
        for file, statement in ACCIDENTS[name]:
            with closing(sqlite3.connect(folder / file, timeout=30)) as database, database:
                count = database.execute(statement).rowcount
            print(f"{name}: {count} {'row' if count == 1 else 'rows'} of {file}: {statement}")


if __name__ == "__main__":
    typer.run(main)
