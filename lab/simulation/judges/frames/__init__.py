"""Checks the frames of a simulation, and records them for the page that shows the simulation."""
