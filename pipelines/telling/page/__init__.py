"""The reconciliation as one HTML page: its content as values, and the page itself."""
