"""Runs the worlds of many seeds, in one process or on all CPUs. Shrinks the failed ones, and reports them."""
