"""Dead letters of consumer groups: which there are, what they hold, and how they are treated."""
