"""The stored records of transactions: half messages and op messages."""
