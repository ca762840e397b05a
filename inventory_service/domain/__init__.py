"""What shipping means, and its rules; no database, broker or HTTP."""
