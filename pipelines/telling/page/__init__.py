"""The reconciliation as one HTML page: what it shows as values, and the page made of them."""
