"""How the world reaches the order service: HTTP, and the process itself."""
