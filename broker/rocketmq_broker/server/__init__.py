"""The broker's processors, one for each family of request codes, and what they share: groups of clients, held pulls, delays."""
