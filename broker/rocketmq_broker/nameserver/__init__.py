"""The name server, which keeps the routes of brokers and topics (RocketMQ's namesrv)."""
