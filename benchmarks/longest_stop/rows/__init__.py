"""The actions by which a client may stop the loop: one module for each, in a room for each kind of request."""
