"""Divides a topic's queues among the consumers of a group, and sets whether the consumers pull or pop."""
