"""The real broker and the real services in a web page: a session of buttons, which any Python plays with the same bytes.

It imports only what Pyodide has: no threads, no sockets, no Spark.
"""
