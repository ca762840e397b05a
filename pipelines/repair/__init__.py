"""Repairs after a reconciliation: plans with evidence, and their execution."""
