"""Who is connected, in which groups, and which queues they have locked."""
