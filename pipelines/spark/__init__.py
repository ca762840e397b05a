"""Starts Spark, and shows its progress."""
