"""The messages of a broker: from the files of its store, or pulled from its queues."""
