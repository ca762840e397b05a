"""The HTML report of a reconciliation."""
