"""Reconciliation by Spark: reads both databases, and optionally the commit log, and decides whether orders and credits agree."""
