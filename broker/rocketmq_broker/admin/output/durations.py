"""Parses and formats durations."""

import re

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_MAX_TEXT_LENGTH = 100
_TO_THE_MILLISECOND_MS = 100_000
MAX_MS = 100 * 365 * 86_400_000
_PART = re.compile(r"([0-9]+)(ms|s|m|h|d)")


def parse_duration_ms(text: str) -> int:
    """Parses a duration such as `90s`, `1h30m` or `2d` and returns it in milliseconds.

    A number without a unit is in seconds. Raises ValueError if the duration is invalid.
    """
    compact = text.replace(" ", "")
    if len(compact) > _MAX_TEXT_LENGTH:
        raise ValueError(f"duration too long: {len(text)} characters, at most {_MAX_TEXT_LENGTH}")
    if compact.isascii() and compact.isdigit():
        compact += "s"
    parts = _PART.findall(compact)
    if not parts or "".join(number + unit for number, unit in parts) != compact:
        raise ValueError(f"invalid duration {text!r}: expected, for example, 90s, 5m, 1h30m or 2d")
    duration_ms = sum(int(number) * _UNITS_MS[unit] for number, unit in parts)
    if duration_ms > MAX_MS:
        raise ValueError(f"duration {text!r} too long: at most 100 years")
    return duration_ms


def duration_text(duration_ms: int) -> str:
    """Formats a duration in its two largest units, for example `850 ms`, `12 s`, `3 m 20 s` or `2 d 4 h`."""
    if duration_ms < 1000:
        return f"{duration_ms} ms"
    seconds = duration_ms // 1000
    parts = [(seconds // 86_400, "d"), (seconds // 3600 % 24, "h"), (seconds // 60 % 60, "m"), (seconds % 60, "s")]
    first = next(index for index, (count, _) in enumerate(parts) if count)
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2] if count)


def ago_text(ms: int | None, now_ms: int) -> str:
    """Formats the time that has passed since another time, such as `12 s ago`; an empty string for None."""
    return "" if ms is None else f"{duration_text(max(0, now_ms - ms))} ago"


def since_text(span_ms: int) -> str:
    """Formats a signed time difference, such as `+2,000 ms` below 100 s or `+7 m 40 s` above."""
    sign, span_ms = ("+", span_ms) if span_ms >= 0 else ("-", -span_ms)
    return f"{sign}{span_ms:,} ms" if span_ms < _TO_THE_MILLISECOND_MS else f"{sign}{duration_text(span_ms)}"
