import pytest

from inventory_service.domain.shipment import ShipmentLine, first_missing, totals


def test_lines_of_one_article_count_together() -> None:
    assert totals([ShipmentLine("tea", 2), ShipmentLine("cup", 1), ShipmentLine("tea", 3)]) == {"tea": 5, "cup": 1}


@pytest.mark.parametrize(
    ("wanted", "stock", "missing"),
    [
        ({}, {}, None),
        ({"tea": 2}, {"tea": 2}, None),
        ({"tea": 3}, {"tea": 2}, "tea"),
        ({"tea": 1, "cup": 1}, {"tea": 1, "cup": 0}, "cup"),
        ({"download": 10_000}, {"tea": 0}, None),
    ],
)
def test_the_first_article_of_which_there_is_too_little_is_named(
    wanted: dict[str, int], stock: dict[str, int], missing: str | None
) -> None:
    assert first_missing(wanted, stock) == missing
