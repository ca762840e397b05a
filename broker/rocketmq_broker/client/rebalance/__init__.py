"""Rebalancing: the assignment of queues to the members of a consumer group."""
