"""What a service does with a message that cannot be worked on now: hold it, try again, or give it up."""
