"""Which queues a member of a group has."""
