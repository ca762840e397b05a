"""Replaces functions of Python's standard library, so that programs in a world (a simulated run) use its time and randomness.

While a world runs, the listed functions use the simulated clock and randomness in its processes. Elsewhere they are unchanged.
Everything else remains real, such as `datetime.now()`, the threads and locks of `threading`, and sockets.
"""

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from rocketmq_broker.testing.simulation.loop import OWNER
from rocketmq_broker.testing.simulation.process import SimulatedProcess

_IN_A_PROCESS: Final[dict[tuple[Any, str], Callable[[SimulatedProcess], Callable[..., Any]]]] = {
    (time, "sleep"): lambda process: process.world.sleep,
    (time, "time"): lambda process: lambda: process.world.wall_ns() / 1e9,
    (time, "time_ns"): lambda process: process.world.wall_ns,
    (time, "monotonic"): lambda process: process.world.steady_s,
    (os, "urandom"): lambda process: process.world.nonce,
}
"""Maps a function, given by module and name, to a factory of its replacement. `uuid.uuid4` is covered by `os.urandom`."""


@contextmanager
def python_of_the_world(seed: int, name_servers: str) -> Iterator[None]:
    """Replaces the functions of `_IN_A_PROCESS` within the block, and sets NAMESRV_ADDR to the world's name server."""
    originals = {place: getattr(*place) for place in _IN_A_PROCESS}
    state, address_before = random.getstate(), os.environ.get("NAMESRV_ADDR")
    for (module, name), choose in _IN_A_PROCESS.items():
        setattr(module, name, _chosen(originals[module, name], choose))
    random.seed(seed)
    os.environ["NAMESRV_ADDR"] = name_servers
    try:
        yield
    finally:
        for (module, name), original in originals.items():
            setattr(module, name, original)
        random.setstate(state)
        if address_before is None:
            del os.environ["NAMESRV_ADDR"]
        else:
            os.environ["NAMESRV_ADDR"] = address_before


def _chosen(original: Callable[..., Any], choose: Callable[[SimulatedProcess], Callable[..., Any]]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        owner = OWNER.get()
        return choose(owner)(*args) if isinstance(owner, SimulatedProcess) else original(*args)

    return call
