"""Four programs that place an order and give its credit. Each is killed after the order is stored and before the credit is.

These are the programs of the chapter tutorials/saga-tcc-and-xa: `python -m tutorials.halfway saga FOLDER place order-1 kill`.
"""
