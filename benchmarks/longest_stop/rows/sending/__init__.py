"""Messages and batches that a producer sends."""
