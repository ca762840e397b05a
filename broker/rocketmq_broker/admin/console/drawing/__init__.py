"""Computes the geometry of diagrams and charts, which templates render as SVG."""
