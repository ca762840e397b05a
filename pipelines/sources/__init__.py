"""The sources of the reconciliation: database tables, read with ADBC, and RocketMQ's commit log."""
