"""Windows over cells: what is known of each instant of a group, put together for each window. All that is computed is
computed for many windows at once, as ranges of cells."""
