import pytest

from credit_service.domain.credit import points_for
from tests.component.credit_service.conftest import a_credit, a_reversal


@pytest.mark.parametrize(("total_cents", "points"), [(0, 0), (99, 0), (100, 1), (199, 1), (200, 2), (10**15, 10**13)])
def test_a_credit_point_is_earned_for_each_full_unit_of_currency(total_cents: int, points: int) -> None:
    assert points_for(total_cents) == points


@pytest.mark.parametrize("total_cents", [0, 99, 100, 199, 10**15])
def test_a_reversal_takes_back_exactly_what_the_order_earned(total_cents: int) -> None:
    assert a_credit(amount_cents=total_cents).points + a_reversal(amount_cents=total_cents).points == 0


def test_a_reversal_is_no_redelivery_of_its_credit() -> None:
    assert not a_reversal().is_redelivery_of(a_credit())
    assert a_reversal().is_redelivery_of(a_reversal())
