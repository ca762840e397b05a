import pytest

from service_runtime.text import rfc3339, rfc3339_or_none


@pytest.mark.parametrize(
    ("at_ms", "text"),
    [(0, "1970-01-01T00:00:00.000Z"), (1_700_000_000_007, "2023-11-14T22:13:20.007Z"), (-1, "1969-12-31T23:59:59.999Z")],
)
def test_a_time_is_shown_in_utc_with_milliseconds(at_ms: int, text: str) -> None:
    assert rfc3339(at_ms) == rfc3339_or_none(at_ms) == text


def test_no_time_is_shown_as_none() -> None:
    assert rfc3339_or_none(None) is None
