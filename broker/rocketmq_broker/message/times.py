"""The constant FOREVER_MS, a time later than any real time, in milliseconds since the epoch."""

from typing import Final

FOREVER_MS: Final = 2**62
"""A time later than any real time, in milliseconds since the epoch."""
