"""Tests receipt handles."""

import pytest

from rocketmq_broker.server.popping.errors import IllegalHandle
from rocketmq_broker.server.popping.receipt_handle import ReceiptHandle

TEXT = "7 1700000000000 60000 0 0 broker-a 3 9"


def test_a_handle_is_rocketmqs_extra_info() -> None:
    handle = ReceiptHandle.parse(TEXT)
    assert handle == ReceiptHandle(7, 1_700_000_000_000, 60_000, False, False, "broker-a", 3, 9)
    assert str(handle) == TEXT
    assert handle.expires_ms == 1_700_000_060_000


def test_a_handle_of_an_orderly_pop_or_of_a_retried_message_says_so() -> None:
    text = "7 1700000000000 60000 999 1 broker-a 0 9"
    handle = ReceiptHandle.parse(text)
    assert (handle.is_ordered, handle.is_retry, str(handle)) == (True, True, text)
    assert handle.stored_in("credits", "orders") == b"%RETRY%credits_orders"
    assert handle.stored_in("credits", "%RETRY%credits_orders") == b"%RETRY%credits_orders"
    assert ReceiptHandle.parse(TEXT).stored_in("credits", "orders") == b"orders"


def test_a_request_may_name_the_offset_apart() -> None:
    assert str(ReceiptHandle.parse(TEXT.removesuffix(" 9"), 9)) == TEXT


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        TEXT.removesuffix(" 9"),
        TEXT + " 10",
        TEXT.replace("60000", "x"),
        TEXT.replace("60000 0 0", "60000 0 2"),
        TEXT.replace("broker-a", "b" * 1024),
        TEXT.replace("7 ", "9" * 5000 + " "),
    ],
)
def test_another_text_is_no_handle(text: str) -> None:
    with pytest.raises(IllegalHandle, match="not a receipt handle of a popped message"):
        ReceiptHandle.parse(text)
