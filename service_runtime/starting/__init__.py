"""How a process of a service starts, and how it says why it cannot."""
