"""Spark's start, its code archive, and its progress."""
