"""How the world reaches the inventory service: HTTP, and the process itself."""
