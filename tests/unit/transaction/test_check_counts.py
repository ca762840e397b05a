import pytest

from broker.transaction.check_counts import decode_check_counts, encode_check_counts
from tests.unit.transaction.records import transaction


def test_check_counts_survive_the_file() -> None:
    content = encode_check_counts([transaction(100, checks=2), transaction(200, checks=0), transaction(300, checks=15)])

    assert decode_check_counts(content) == {100: 2, 300: 15}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"checks": 1}', b'{"checks": {"x": 1}}', b"\x00\xff"])
def test_a_damaged_file_means_that_nothing_is_known(content: bytes) -> None:
    assert decode_check_counts(content) == {}
