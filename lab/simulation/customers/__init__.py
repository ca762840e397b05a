"""Customers of the simulated shop: what they ask, and what they are told."""
