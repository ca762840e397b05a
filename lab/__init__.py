"""The benchmarks and the simulations of the whole system. No other package of the project imports them."""
