"""The broker's processors, one for each family of request codes, and their shared parts: groups of clients, pulls, delays."""
