"""A transactional message broker and its client, with RocketMQ's design, wire protocol and file formats."""

__version__ = "0.3.0"
