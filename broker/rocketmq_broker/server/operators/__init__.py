"""The requests of operators."""
