"""Compares the tables of orders and credits with three tools: our reconciliation, datacompy on Spark, and a join in DuckDB."""
