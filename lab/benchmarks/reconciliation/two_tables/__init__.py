"""Compares the tables of orders and credits with our reconciliation, with datacompy on Spark, and with a join in DuckDB."""
