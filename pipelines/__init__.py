"""The reconciliation in PySpark. It compares orders with credits, from the two databases and optionally the commit logs."""
