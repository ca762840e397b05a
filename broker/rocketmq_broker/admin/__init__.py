"""The operators' tool on the command line: `python -m rocketmq_broker.admin`. It also works with Apache's brokers."""
