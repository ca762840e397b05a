"""Kills a process while an order is placed. Shows what is on disk after the kill, and what completes the order.

This is the program of the chapter tutorials/kill-everything: `python -m tutorials.kills MOMENT VICTIM`.
"""
