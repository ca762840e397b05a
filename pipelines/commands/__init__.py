"""The commands `reconcile`, `messages`, `watch`, `breaks` and `repair`."""
