"""Orders and their rules; no database, broker or HTTP."""
