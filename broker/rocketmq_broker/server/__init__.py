"""Handles the broker's requests: one processor for each family of request codes, and the code that the processors share."""
