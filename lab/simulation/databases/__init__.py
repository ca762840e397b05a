"""The databases of the simulated world, and what goes wrong with them."""
