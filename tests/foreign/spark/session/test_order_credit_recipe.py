"""Tests that the comparison of the recipe order_credit finds each kind of difference, and none between equal databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from sqlmodel import Session, SQLModel, create_engine

from tutorials.recipes.order_credit.compare import findings
from tutorials.recipes.order_credit.credits import Base as CreditBase
from tutorials.recipes.order_credit.credits import Credit
from tutorials.recipes.order_credit.orders import Base as OrderBase
from tutorials.recipes.order_credit.orders import Order


def stored(path: Path, base: type[SQLModel], rows: Iterator[SQLModel]) -> str:
    url = f"sqlite:///{path}"
    engine = create_engine(url)
    base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all(rows)
        session.commit()
    return url


def orders(*ids: str) -> Iterator[Order]:
    return (Order(order_id=order_id, customer="ada", total_cents=2599) for order_id in ids)


def credits(*points: tuple[str, int]) -> Iterator[Credit]:
    return (Credit(order_id=order_id, customer="ada", points=given) for order_id, given in points)


@pytest.mark.parametrize(
    ("points", "wanted"),
    [
        ([("1", 25), ("2", 25), ("3", 25)], []),
        (
            [("1", 25), ("1", 25), ("2", 26), ("4", 25)],
            [("1", "double credit"), ("2", "wrong points"), ("3", "missing credit"), ("4", "credit without order")],
        ),
    ],
)
def test_each_difference_is_found(
    spark: SparkSession, tmp_path: Path, points: list[tuple[str, int]], wanted: list[tuple[str, str]]
) -> None:
    orders_url = stored(tmp_path / "orders.db", OrderBase, orders("1", "2", "3"))
    credits_url = stored(tmp_path / "credits.db", CreditBase, credits(*points))
    found = findings(spark, orders_url, credits_url).collect()
    assert sorted((row["order_id"], row["finding"]) for row in found) == wanted
