"""What producers and consumers send, on its way into the store."""
