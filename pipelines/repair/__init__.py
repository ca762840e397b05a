"""Repair after a reconciliation: a plan with evidence, and its execution."""
