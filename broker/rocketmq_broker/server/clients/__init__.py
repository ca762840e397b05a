"""Tracks the connected clients, their groups, and the queues that they have locked."""
