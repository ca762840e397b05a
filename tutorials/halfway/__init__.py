"""Four programs that place an order and give the customer a credit.

Each program is killed after the order is stored and before the credit is stored. The chapter
tutorials/saga-tcc-and-xa describes the programs: `python -m tutorials.halfway.saga FOLDER place order-1 kill`.
"""
