"""The limits of values that the services write, and the rate of points. Both engines use them."""

from __future__ import annotations

from typing import Final

CENTS_PER_POINT: Final = 100
"""The number of cents for one credit point. An order earns one point for each full currency unit."""
MAX_QUANTITY: Final = 10**9
CURRENCY_LETTERS: Final = 3
