"""Measures the reconciliation on large databases with known faults: `make bench-pipelines`.

Also compares it with datacompy and DuckDB.
"""
