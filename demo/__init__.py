"""Runs the demo: orders become credits while processes are killed, and Spark checks the result."""
