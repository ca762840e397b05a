"""Limits on registrations.

With these limits, a registration, a query or a closed connection blocks the name server for less than 50 ms.
"""

from typing import Final

MAX_BROKERS: Final = 1000
"""The maximum number of masters and slaves. A route request reads the tables of all brokers, which takes about 50 µs."""
MAX_TOPICS_OF_A_BROKER: Final = 65_536
"""The maximum number of topics of a broker, including retry and dead-letter topics. Deleting that many takes about 10 ms."""
MAX_ENTRIES: Final = 300_000
"""The maximum number of topics of all brokers together. Listing them takes about 40 ms."""
MAX_FILTER_SERVERS: Final = 16
"""The maximum number of filter servers of one broker. Each response with a route contains them."""
MAX_QUEUES: Final = 65_535
"""The maximum number of queues of one topic at one broker. Clients create an object for each queue."""
MAX_NAME_LENGTH: Final = 255
"""The maximum number of characters in an address, or in the name of a topic (127 in RocketMQ), broker or cluster."""
MAX_PLAIN_REGISTRATION_LENGTH: Final = 5 * 1024 * 1024
"""The maximum length of a JSON registration in bytes (about 30,000 topics). Decoding it blocks the event loop for about 40 ms.
A compressed registration is decoded in steps."""
