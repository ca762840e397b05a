"""Plants bugs, one at a time, to check that the simulated world finds them.

A planted bug replaces functions of the production code in this interpreter during a `with` block. The production code does not
contain it. `lab.simulation.planted.all_planted` has the list and `planted(name)`.
"""
