"""The reconciliation in PySpark: reads both databases and optionally the commit log, and checks that orders and credits agree."""
