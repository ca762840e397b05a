import pytest

from rocketmq_broker.admin.output.durations import duration_text, parse_duration_ms, since_text


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        ("0", 0),
        ("90", 90_000),
        ("90s", 90_000),
        ("1h30m", 5_400_000),
        ("2d", 172_800_000),
        ("250ms", 250),
        ("1 h 5 s", 3_605_000),
    ],
)
def test_durations_are_read_as_people_write_them(text: str, duration_ms: int) -> None:
    assert parse_duration_ms(text) == duration_ms


@pytest.mark.parametrize("text", ["", "soon", "5x", "h", "-5s", "1h-5m", "5m!", "1.5h"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid duration"):
        parse_duration_ms(text)


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [(0, "0 ms"), (999, "999 ms"), (12_000, "12 s"), (200_000, "3 m 20 s"), (3_600_000, "1 h"), (187_200_000, "2 d 4 h")],
)
def test_durations_are_written_with_their_two_largest_units(duration_ms: int, text: str) -> None:
    assert duration_text(duration_ms) == text


@pytest.mark.parametrize(("span_ms", "text"), [(0, "+0 ms"), (-20, "-20 ms"), (99_999, "+99,999 ms"), (460_000, "+7 m 40 s")])
def test_the_time_since_another_moment_has_its_sign(span_ms: int, text: str) -> None:
    assert since_text(span_ms) == text
