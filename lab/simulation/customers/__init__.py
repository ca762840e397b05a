"""Models the customers of the simulated shop, with their requests and answers."""
