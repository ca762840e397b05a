"""Provides the random numbers of a simulated world, with an independent stream for each name."""

import random


def stream(seed: int, *names: str | int) -> random.Random:
    """Returns the random stream for these names. Removing an event from a plan does not change the streams of other names."""
    return random.Random("/".join(map(str, (seed, *names))))
