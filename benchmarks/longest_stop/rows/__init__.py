"""What a client may do to stop the loop: one module for each, in a room for each kind of request."""
