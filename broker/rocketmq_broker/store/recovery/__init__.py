"""What a store does to be whole again after a crash or damage."""
