"""Reconciliation by Spark: reads both databases, and if asked the commit log, and says whether orders and credits agree."""
