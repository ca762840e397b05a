"""Times in milliseconds since the epoch, as messages and requests hold them."""

from typing import Final

FOREVER_MS: Final = 2**62
"""A time later than all others."""
