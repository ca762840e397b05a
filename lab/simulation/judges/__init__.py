"""The judges of a simulated world. Each checks other promises and returns violations."""
