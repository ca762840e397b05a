"""A recipe: an order and its credit with Apache's Python client of RocketMQ 5."""
