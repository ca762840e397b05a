"""Kills a process while an order is placed, and shows what is on disk then and what completes the order.

This is the program of the chapter tutorials/kill-everything: `python -m tutorials.kills MOMENT VICTIM`.
"""
