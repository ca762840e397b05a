"""The judges of a simulation. Each judge checks different guarantees, and returns the violations."""
