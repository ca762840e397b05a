"""Transactional messages: states and transitions, decisions, check-backs and recovery. Pure code without I/O or a clock."""
