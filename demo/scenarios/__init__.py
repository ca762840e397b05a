"""Scenarios: faults that a button causes, with the proof that no order and no credit is lost or doubled."""
