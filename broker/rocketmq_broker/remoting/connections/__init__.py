"""One connection: its requests, its answers, the bytes it may hold, and when it has been idle for too long."""
