"""Mending what a reconciliation found: a plan with evidence, and what carries it out."""
