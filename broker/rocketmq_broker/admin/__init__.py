"""The command line tool for operators, started by `python -m rocketmq_broker.admin`. It also works with Apache's brokers."""
