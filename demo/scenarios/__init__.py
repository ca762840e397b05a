"""Runs scenarios. Each causes a fault at the click of a button, and proves that no order or credit is lost or doubled."""
