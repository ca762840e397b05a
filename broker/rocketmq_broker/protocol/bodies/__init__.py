"""The bodies of requests and responses, with RocketMQ's names. Heartbeats and routes must be imported from their modules."""
