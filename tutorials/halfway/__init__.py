"""Four programs that place an order and give its credit, each killed at the same place: order stored, credit not.

These are the programs of the chapter tutorials/saga-tcc-and-xa: `python -m tutorials.halfway.saga FOLDER place order-1 kill`.
"""
