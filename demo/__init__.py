"""The main job, shown: orders become credits while processes are killed, and Spark judges the result."""
