"""Apache's sample of transactional messages, and the same ten messages with a durable listener."""
