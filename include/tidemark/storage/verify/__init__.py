"""Whether storage holds what the states say: the objects of one state, and the history of states."""
