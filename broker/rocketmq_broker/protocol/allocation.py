"""The division of a topic's queues among the consumers of a group (RocketMQ's AllocateMessageQueueStrategy).

Every member of a group, or the broker for it, computes the same from the same two sets, so no two members get the same queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from rocketmq_broker.message import MessageQueue

Strategy = Callable[[Iterable[MessageQueue], Iterable[str], str], list[MessageQueue]]
"""Gets all queues, the client ids of all members, and that of the one whose share it returns."""


def allocate_averagely(queues: Iterable[MessageQueue], client_ids: Iterable[str], own_id: str) -> list[MessageQueue]:
    """Returns a client's share: consecutive queues, the first `len(queues) % len(clients)` clients one more than the others.

    It is RocketMQ's AllocateMessageQueueAveragely. A client that is not among `client_ids` gets none.
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
    """Returns a client's share: every n-th queue of n clients (AllocateMessageQueueAveragelyByCircle)."""
    all_clients = sorted(set(client_ids))
    if own_id not in all_clients:
        return []
    return sorted(queues)[all_clients.index(own_id) :: len(all_clients)]


STRATEGIES: Final[Mapping[str, Strategy]] = {"AVG": allocate_averagely, "AVG_BY_CIRCLE": allocate_by_circle}
"""Those that a broker can apply, by the names that clients send."""
