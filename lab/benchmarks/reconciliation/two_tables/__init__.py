"""Compares orders with credits, two tables only, with ours, with datacompy on Spark and with a full outer join of DuckDB."""
