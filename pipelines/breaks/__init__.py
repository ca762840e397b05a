"""Breaks with a life: the findings of reconciliations, from their first appearance until they are closed."""
