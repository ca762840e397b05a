"""Assignments: the broker divides a topic's queues among the consumers of a group, and sets whether they pull or pop."""
