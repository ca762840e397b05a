"""A demo of the whole system.

It places orders while processes are killed, and checks with Spark that each order is credited once.
"""
