"""Recovers a store after a crash or damage."""
