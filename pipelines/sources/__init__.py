"""Where the reconciliation reads: tables by ADBC, and RocketMQ's commit log from its files."""
