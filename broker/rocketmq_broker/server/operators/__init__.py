"""Handles the admin requests of operators, as sent by mqadmin and `rocketmq_broker.admin`."""
