"""The recovery of a store after a crash or damage."""
