"""Dead letters of consumer groups: their list, their content and their treatment."""
