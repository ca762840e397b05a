"""Plants bugs, one at a time, to check that the simulations find them.

A planted bug replaces functions of the production code during a `with` block, in this interpreter only. The files of the
production code are not changed. `lab.simulation.planted.all_planted` contains the list of bugs and `planted(name)`.
"""
