"""Runs the simulations of many seeds on all CPUs. Shrinks and reports the failed ones."""
