"""Runs scenarios.

Each scenario causes a fault when a user clicks a button, and checks that no order or credit is lost or duplicated.
"""
