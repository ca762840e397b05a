"""Formats and prints results as tables, JSON and text."""
