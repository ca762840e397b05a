"""A whole world in one process: processes, network, disks and clocks on one event loop, driven by a seed.

Nothing here is real but the code under test. A plan says what customers do and what goes wrong; the same plan gives the same
history, byte for byte. The models are FoundationDB's simulation and TigerBeetle's VOPR.
"""

from importlib.util import find_spec

if find_spec("greenlet") is None:
    raise ImportError("the simulated world needs the package greenlet: pip install 'rocketmq-broker[simulation]'")
