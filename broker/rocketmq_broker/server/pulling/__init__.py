"""What consumers pull, query and acknowledge."""
