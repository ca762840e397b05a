"""Runs the reconciliation incrementally. A run reads only the rows above the high-water marks of the last run."""
