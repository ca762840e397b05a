"""Scenarios: faults on the push of a button, and evidence that no order and no credit is lost or doubled."""
