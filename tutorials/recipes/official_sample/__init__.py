"""Apache's sample of transactional messages, and the same ten messages with a listener that stores its state in a database."""
