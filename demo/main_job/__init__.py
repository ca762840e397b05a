"""`python -m demo`: places orders while processes are killed, waits until all are credited, and checks the result."""
