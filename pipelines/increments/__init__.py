"""Runs the reconciliation incrementally, with high-water marks of the sources, and with open and settled histories."""
