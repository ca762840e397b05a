"""Reports of a reconciliation on the screen, as JSON and as a page."""
