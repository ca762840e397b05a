"""Chance in a simulated world: a stream of its own for each name."""

import random


def stream(seed: int, *names: str | int) -> random.Random:
    """Returns the source of chance of that name. An event that is taken out of a plan leaves the other streams alone."""
    return random.Random("/".join(map(str, (seed, *names))))
