import pytest

from rocketmq_broker.message import properties as props
from rocketmq_broker.transaction.checking.check_policy import CheckPolicy

POLICY = CheckPolicy(transaction_timeout_ms=6000, file_reserved_ms=1_000_000)


@pytest.mark.parametrize(
    ("immunity", "due_ms"),
    [(None, 7000), ("10", 11_000), ("1", 2000), ("0", 1000), ("-1", 7000), ("-5", 7000), ("soon", 7000), ("", 7000)],
)
def test_the_first_check_waits_for_the_immunity_or_else_the_timeout(immunity: str | None, due_ms: int) -> None:
    encoded = b"" if immunity is None else b"A\x01b\x02CHECK_IMMUNITY_TIME_IN_SECONDS\x01" + immunity.encode()

    assert POLICY.first_check_due(1000, encoded) == due_ms


def test_a_huge_immunity_ends_with_the_message() -> None:
    encoded = props.encode({"CHECK_IMMUNITY_TIME_IN_SECONDS": "9" * 30})

    assert POLICY.first_check_due(1000, encoded) == 1_001_001
