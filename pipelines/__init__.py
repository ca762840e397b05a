"""The reconciliation in PySpark, which reads both databases and optionally the commit log, and compares orders with credits."""
