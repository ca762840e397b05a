"""Checks the frames of a world, and records them for the world's page."""
