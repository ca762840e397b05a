"""The allocation of a topic's queues to the consumers of a group (RocketMQ's AllocateMessageQueueAveragely)."""

from collections.abc import Iterable

from rocketmq_broker.message import MessageQueue


def allocate_averagely(queues: Iterable[MessageQueue], client_ids: Iterable[str], own_id: str) -> list[MessageQueue]:
    """Returns this client's share: consecutive queues, the first `len(queues) % len(clients)` clients one more than the others.

    Every member of the group computes the same from the same two sets, so no two get the same queue. A client that is not among
    `client_ids` gets none.
    """
    all_queues = sorted(queues)
    all_clients = sorted(set(client_ids))
    if own_id not in all_clients:
        return []
    index = all_clients.index(own_id)
    share, remainder = divmod(len(all_queues), len(all_clients))
    begin = index * share + min(index, remainder)
    return all_queues[begin : begin + share + (1 if index < remainder else 0)]
