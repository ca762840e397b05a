"""Plays the worlds of many seeds on all CPUs, and shrinks and reports failed ones."""
