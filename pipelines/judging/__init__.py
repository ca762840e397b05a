"""What the three witnesses say of each order: events, one history for each, and the class and cause that rules give it."""
