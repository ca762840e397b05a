"""The planted bugs, one module for each area."""
