"""Transactional messages: their states, decisions, check-backs and recovery. The package does no I/O and reads no clock."""
