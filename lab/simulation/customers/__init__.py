"""Models the customers of the simulated shop, with their requests and the service's responses."""
