"""Kills one process at one moment of an order's life, and shows what is on disk, and who finishes the order.

The program of the chapter tutorials/kill-everything: `python -m tutorials.kills MOMENT VICTIM`.
"""
