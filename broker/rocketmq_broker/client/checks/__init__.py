"""First mistakes, answered by a sentence."""
