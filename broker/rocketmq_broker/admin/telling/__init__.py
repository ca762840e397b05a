"""Prints answers as tables, as JSON and as text."""
