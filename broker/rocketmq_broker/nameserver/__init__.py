"""The name server: which brokers are there, and which topics they hold (RocketMQ's namesrv)."""
