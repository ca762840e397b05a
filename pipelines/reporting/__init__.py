"""Reports the outcome of a reconciliation on the screen, as JSON and as an HTML page."""
