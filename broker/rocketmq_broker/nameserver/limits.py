"""Bounds on registrations, so that no registration, query or end of a connection stops the name server for 50 ms."""

from typing import Final

MAX_BROKERS: Final = 1000
"""Masters and slaves. A query for a route reads each of their tables, which then takes some 50 µs."""
MAX_TOPICS_OF_A_BROKER: Final = 65_536
"""Retry topics and dead letters included. Deleting that many takes some 10 ms."""
MAX_ENTRIES: Final = 300_000
"""Topics times brokers: a list of all topics is made from them in some 40 ms."""
MAX_FILTER_SERVERS: Final = 16
"""Filter servers of one broker; each answer with a route holds them."""
MAX_QUEUES: Final = 65_535
"""Queues of one topic at one broker: clients make an object for each."""
MAX_NAME_LENGTH: Final = 255
"""Characters of a topic, a broker, a cluster or an address. RocketMQ allows topics of 127."""
MAX_PLAIN_REGISTRATION_LENGTH: Final = 5 * 1024 * 1024
"""Bytes, about 30,000 topics: JSON is read without a pause, in some 40 ms. A compressed registration is read in steps."""
