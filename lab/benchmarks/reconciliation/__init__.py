"""`make bench-pipelines`: the reconciliation on large books with a known number of faults, beside datacompy and DuckDB."""
