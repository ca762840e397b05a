"""How the world reaches the credit service: HTTP, and its processes."""
