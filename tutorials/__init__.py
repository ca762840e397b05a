"""Tutorials in chapters, one in each folder. The tests run every code block of the chapters."""
