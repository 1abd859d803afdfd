"""Batching windows: when what arrives is cut into a batch, and why. A matter of processing time, never of event time.

    reason.py   why a batch was cut, in order of precedence
    rate.py     how many rows arrive a second, and whether that changed
    length.py   how long a batch stays open: fixed, or adapted to the rate
    cutting.py  the rules of a collection, and the cut that follows from them
    memory.py   how many bytes may be reserved at once, by whom

All of it is arithmetic on values that say the time themselves, in microseconds (docs/decisions/0045).
"""
