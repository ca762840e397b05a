"""Orders against credits, two tables and no more: ours beside datacompy on Spark and a full outer join of DuckDB."""
