"""The sources of the reconciliation: tables by ADBC, and RocketMQ's commit log from its files."""
