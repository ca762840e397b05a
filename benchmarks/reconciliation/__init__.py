"""`make bench-pipelines`: the reconciliation on large books, with faults whose number is known, beside datacompy and DuckDB."""
