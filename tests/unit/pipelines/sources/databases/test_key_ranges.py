from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pipelines.sources.databases.key_ranges import MAX_RANGES, KeyRange, split_keys


def test_the_last_range_ends_with_the_highest_key_and_an_empty_table_has_none() -> None:
    assert split_keys(None, None) == []
    assert split_keys(7, 7) == [KeyRange(7, 7)]
    assert split_keys(1, 25, 10) == [KeyRange(1, 10), KeyRange(11, 20), KeyRange(21, 25)]


@given(st.integers(-(10**15), 10**15), st.integers(0, 10**15), st.integers(1, 10**6))
def test_ranges_cover_every_key_once_and_are_not_too_many(lowest: int, span: int, rows: int) -> None:
    ranges = split_keys(lowest, lowest + span, rows)
    assert ranges[0].first == lowest
    assert ranges[-1].last == lowest + span
    assert all(left.last + 1 == right.first for left, right in pairwise(ranges))
    assert len(ranges) <= MAX_RANGES
