"""Tracks breaks. A break is a difference between orders and credits, tracked from its first finding until it is closed."""
