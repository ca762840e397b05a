"""A deterministic simulation of processes, network, disks and clocks on one event loop, driven by a seed.

One simulated run is called a world. Only the code under test is real. A plan contains the customers' actions and the faults. The
same plan always produces the same history, byte for byte. The design follows FoundationDB's simulation and TigerBeetle's VOPR.
"""

from importlib.util import find_spec

if find_spec("greenlet") is None:
    raise ImportError("the simulation needs the package greenlet: pip install 'rocketmq-broker[simulation]'")
