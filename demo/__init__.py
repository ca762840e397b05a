"""Runs the demo, in which orders become credits while processes are killed, and Spark checks the result."""
