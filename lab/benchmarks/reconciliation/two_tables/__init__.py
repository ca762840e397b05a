"""Orders against credits, two tables only: ours beside datacompy on Spark and a full outer join of DuckDB."""
