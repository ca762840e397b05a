"""What operators do with transactions from the command line: `python -m rocketmq_broker.admin`. It also works with Apache's
brokers, as far as they know the requests.
"""
