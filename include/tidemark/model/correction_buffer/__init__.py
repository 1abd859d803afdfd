"""What is decided of rows that are ahead, by numbers alone: in which time bucket they are kept, and when batches of a
bucket are merged. `compact` sorts rows by these that are not due yet (plan/undue.py, docs/decisions/0043).

    buckets.py      time buckets that are wider the farther ahead; what is due is peeled off, the rest is halved
    stack.py        what one bucket holds, from old to new, merged by the chain rule
    chain_rule.py   when what came last is to be merged with what came before

They are generic in what holds the rows: here batches, of which the parts' bounds and numbers of rows are known. Vectors
and tests keep rows themselves in them, in a whole correction buffer (tests/oracles/correction_buffer).
"""
