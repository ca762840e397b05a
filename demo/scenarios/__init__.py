"""Scenarios: what goes wrong is made to go wrong, by a button, and one sees that no order and no credit is lost or doubled."""
