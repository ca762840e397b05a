"""Times in milliseconds since the epoch, as used in messages and requests."""

from typing import Final

FOREVER_MS: Final = 2**62
"""A time that is later than any real time."""
