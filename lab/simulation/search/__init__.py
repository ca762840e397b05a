"""Plays the worlds of many seeds, on all processors, and shrinks and tells those that fail."""
