"""The name server: the table of brokers and of the topics that they hold (RocketMQ's namesrv)."""
