"""Reads the sources of the reconciliation, which are database tables (with ADBC) and RocketMQ's commit log."""
