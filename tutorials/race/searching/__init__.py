"""Searches for anomalies of each approach in simulated runs with random faults, which are determined by a seed."""
