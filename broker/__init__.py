"""A transactional message broker and its client: RocketMQ's design, wire protocol and file formats."""
