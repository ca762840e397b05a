"""Checks of arguments, settings and listeners. Each error names the mistake and its correction."""
