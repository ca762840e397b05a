"""The queues of a group's member."""
