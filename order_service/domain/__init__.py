"""What an order is, and its rules; no database, broker or HTTP."""
