"""Contains the benchmarks and the simulated worlds. No other package of the project imports them."""
