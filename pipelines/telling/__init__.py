"""What a reconciliation found, told on the screen, as JSON and as a page."""
