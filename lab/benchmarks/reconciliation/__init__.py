"""`make bench-pipelines`: measures the reconciliation on large books with known faults, beside datacompy and DuckDB."""
