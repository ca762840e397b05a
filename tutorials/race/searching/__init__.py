"""Runs the race with random faults. Each way runs in a simulated world with the faults of a seed."""
