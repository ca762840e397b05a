"""Step-by-step chapters. The tests run every code block."""
