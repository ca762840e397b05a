"""Sending, and transactions with their check-back."""
