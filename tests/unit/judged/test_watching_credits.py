"""Tests that the readers of the ledger see each change until the end."""

from unittest.mock import Mock

from lab.judged.databases import ShopState, watch_credits
from lab.judged.observations import Observations, ObservedCredits


def test_a_credit_that_was_entered_after_the_last_read_before_the_end_is_observed() -> None:
    observations, state = Observations(), Mock(ShopState)
    state.number_of_credits.side_effect = [{"A": 1}, {"A": 1, "B": 1}]
    observations.is_settled.set()

    watch_credits(state, observations)

    (observed,) = observations.found
    assert isinstance(observed, ObservedCredits)
    assert (observed.order_id, observed.before, observed.after) == ("B", 0, 1)
