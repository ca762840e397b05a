"""Step-by-step chapters whose every block runs in the tests."""
