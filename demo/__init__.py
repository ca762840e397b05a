"""The demonstration of the main job: orders become credits while processes are killed, and Spark judges the result."""
