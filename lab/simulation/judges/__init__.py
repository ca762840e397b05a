"""The judges of a simulated world. Each judge checks different promises and returns violations."""
