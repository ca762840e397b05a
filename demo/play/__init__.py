"""Runs the broker and the services in a web page, controlled by buttons.

The same seed and the same buttons produce the same bytes in Pyodide and in CPython. The package imports only
modules that work in Pyodide: no threads, no sockets, no Spark.
"""
