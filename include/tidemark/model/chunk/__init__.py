"""Chunks: what is known of rows before they are opened, and what follows from it.

A chunk is a row group of a part. It is known at three grains: a block of a parts table, a part, a row group.

    bounds.py   what is known of one column in a chunk: its least and greatest value, its nulls
    law.py      whether a chunk can matter to a read: the pruning law
"""
