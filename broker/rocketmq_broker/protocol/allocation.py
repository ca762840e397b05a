"""Allocates a topic's queues to the consumers of a group (RocketMQ's AllocateMessageQueueStrategy).

Each consumer of the group computes its own share, or the broker computes it for the consumer. All computations use the same
queues and the same client ids, so no queue has two owners.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from rocketmq_broker.message import MessageQueue

Strategy = Callable[[Iterable[MessageQueue], Iterable[str], str], list[MessageQueue]]
"""A function that takes all queues, the client ids of all consumers in the group, and the id of one client.

Returns that client's queues.
"""


def allocate_averagely(queues: Iterable[MessageQueue], client_ids: Iterable[str], own_id: str) -> list[MessageQueue]:
    """Returns a client's share of consecutive queues (RocketMQ's AllocateMessageQueueAveragely).

    The first `len(queues) % len(clients)` clients get one more queue than the remaining clients. A client that is not in
    `client_ids` gets no queue.
    """
    all_queues = sorted(queues)
    all_clients = sorted(set(client_ids))
    if own_id not in all_clients:
        return []
    index = all_clients.index(own_id)
    share, remainder = divmod(len(all_queues), len(all_clients))
    begin = index * share + min(index, remainder)
    return all_queues[begin : begin + share + (1 if index < remainder else 0)]


def allocate_by_circle(queues: Iterable[MessageQueue], client_ids: Iterable[str], own_id: str) -> list[MessageQueue]:
    """Returns a client's share, which is every n-th queue for n clients (RocketMQ's AllocateMessageQueueAveragelyByCircle)."""
    all_clients = sorted(set(client_ids))
    if own_id not in all_clients:
        return []
    return sorted(queues)[all_clients.index(own_id) :: len(all_clients)]


STRATEGIES: Final[Mapping[str, Strategy]] = {"AVG": allocate_averagely, "AVG_BY_CIRCLE": allocate_by_circle}
"""The strategies that a broker supports, keyed by the names that clients send."""
