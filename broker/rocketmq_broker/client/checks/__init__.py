"""Checks of arguments, settings and listeners. Each error describes the mistake and how to correct it."""
