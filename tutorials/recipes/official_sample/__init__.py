"""Apache's sample of transactional messages, and the same ten messages with a listener that keeps its word."""
