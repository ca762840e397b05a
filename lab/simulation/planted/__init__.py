"""Bugs planted on purpose, one at a time: they prove that the simulated world finds what is wrong.

A planted bug replaces functions of the production code in this interpreter, for the length of a `with` block. Nothing of it is in
the production code itself. `lab.simulation.planted.all_planted` has the list and `planted(name)`.
"""
