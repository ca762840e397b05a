"""The words that the rules know are those that the services write."""

from credit_service.domain.credit import ANNULLED_BY, CENTS_IN_A_UNIT, REPAIRED_BY, Credit, EntryKind
from order_service.domain.life_cycle import OrderEvent, OrderState, next_state
from order_service.domain.transaction import TransactionKind, TransactionState
from pipelines.judging import written_words as words
from pipelines.judging.table_events import CENTS_PER_POINT


def test_the_states_of_orders_are_those_of_the_order_service() -> None:
    assert set(words.ORDER_STATES) == {state.value for state in OrderState}


def test_the_kinds_and_states_of_transactions_are_those_of_the_order_service() -> None:
    assert set(words.TRANSACTION_KINDS) == {kind.value for kind in TransactionKind}
    assert set(words.TRANSACTION_STATES) == {state.value for state in TransactionState} - {"UNKNOWN"}


def test_the_kinds_of_entries_are_those_of_the_credit_service() -> None:
    assert set(words.ENTRY_KINDS) == {kind.value for kind in EntryKind}


def test_a_refused_order_is_known_by_its_entries() -> None:
    asked = Credit(order_id="a", customer="ada", amount_cents=1, message_id="M", transaction_id="T")
    assert [entry.message_id for entry in asked.annulled()] == [f"{words.BY_REFUSAL}M"] * 2
    assert (words.BY_REFUSAL, words.BY_REPAIR) == (ANNULLED_BY, REPAIRED_BY)


def test_points_are_counted_alike() -> None:
    assert CENTS_PER_POINT == CENTS_IN_A_UNIT


def test_a_state_that_follows_a_state_that_is_kept_comes_before_it_in_the_alphabet() -> None:
    """A run that reads what is new keeps the least of the states that it has read of an order. It keeps none that awaits."""
    kept = [state for state in OrderState if state is not OrderState.AWAITING_PAYMENT]
    followers = [(state, after) for state in kept for event in OrderEvent if (after := next_state(state, event)) is not None]
    assert followers
    assert all(after.value < state.value for state, after in followers)
