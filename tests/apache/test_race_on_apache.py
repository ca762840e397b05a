"""The race's last way on Apache's broker: a cell with lost COMMITs, and one in which the broker is killed and started again."""

import pytest

from tutorials.race.running import play_cell

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.java, pytest.mark.timeout(900)]


@pytest.mark.parametrize(("fault", "orders", "seed"), [("commit-lost", 3, 19), ("restart-of-all", 4, 15)])
def test_this_kits_way_loses_nothing_on_apaches_broker(fault: str, orders: int, seed: int) -> None:
    figures = play_cell("with-barrier-on-apache", fault, orders, seed)
    assert figures.struck == 2
    assert figures.stored > 0
    assert (figures.missing, figures.phantom) == (0, 0)
