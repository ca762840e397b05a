"""The command line: `reconcile`, `messages`, `watch` and the others."""
