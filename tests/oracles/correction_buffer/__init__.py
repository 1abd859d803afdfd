"""The correction buffer: what a collection ought to hold less what it holds, by time, also of times far ahead.

No product code holds rows in it: a step computes by how much a collection differs and writes that at once. What
`compact` runs of it are the buckets and the stacks (tidemark/model/correction_buffer); here they hold rows, as the
vectors ask.

A job that keeps a collection equal to a definition inserts what is *desired*, and what it reads back from the
collection, *negated*. The multiset that is left, M = desired - persisted, is what remains to be written. To write up to
a frontier is to write `updates_before` of it; what was written comes back and cancels. Nothing is ever removed, so
that a write that was lost is offered again, and a row that somebody else wrote is retracted: the next read repairs it.

An example. Somebody wrote a y that nobody desires; b is to hold from 3 until 1000:

    >>> from tests.oracles.correction_buffer.buffer import CorrectionBuffer
    >>> from tests.oracles.correction_buffer.chain import Correction
    >>> desired = [Correction(1, "a", +1), Correction(3, "b", +1), Correction(1000, "b", -1)]
    >>> buffer = CorrectionBuffer.empty().inserted(desired).inserted_negated([Correction(2, "y", +1)])
    >>> write, buffer = buffer.updates_before(4)
    >>> [f"{row.diff:+}{row.data}@{row.time}" for row in write]
    ['+1a@1', '-1y@2', '+1b@3']
    >>> again, buffer = buffer.updates_before(4)              # nothing came back: it is offered again
    >>> again == write
    True
    >>> buffer = buffer.inserted_negated(write).advanced(4)   # it came back, and all is known below 4
    >>> buffer.updates_before(999)[0]
    []
    >>> late = buffer.inserted([Correction(2, "c", +1)])      # what is desired of a past that is written: from now on
    >>> write, late = late.updates_before(2000)
    >>> [f"{row.diff:+}{row.data}@{row.time}" for row in write]
    ['+1c@4', '-1b@1000']

**Guarantees**, of M and the since S, which only advances. A row's *effective* time is the later of its own and S.

    updates_before(u)   nothing unless S < u; else the rows of effective time below u, diffs of equal (time, data)
                        summed, zeros gone, ordered by time, then data. Reading changes no later answer; u may go back.
    S empty             all is discarded, and all that comes; every read is empty.
    a time              is never lowered, and is raised when it is read, not when S advances: nothing far is touched.

**Where rows are.** Each place holds *chains*: immutable, sorted by (time, data), consolidated in themselves (chain.py).

    stage          what came last, as it came; a chunk of it is sorted and routed at once, as is all of it before a read
    buckets        times from the boundary on, in time buckets that are wider the farther ahead (its buckets.py);
                   in each a stack of chains, geometric by the chain rule (stack.py, chain_rule.py of the product)
    pending_low    chains of times below the boundary that came after the read that set it, or lay beyond a later one
    emitted        one chain: what the last read gave

The *boundary* is the farthest frontier that was ever read. A read peels the buckets below its frontier u, takes what
is in `pending_low` and `emitted` along, leaves what is at u or beyond (u may go back) in `pending_low`, and merges the
rest into the new `emitted`, forwarded to S on the way (forwarding.py). Then the buckets are restored, by bounded work.

In the example the retraction of b at 1000 is in the one bucket there is at first. After the read of 4 the buckets
begin at 4, 5, 6, 8, 16, ... and -b is in [512, 1024). However often one reads from then on, it is touched by nine
splits at most until it is due: a bucket of nine bits cannot be halved more often.

**Invariants.** Each chain is sorted and consolidated, none is empty but `emitted`. Times in buckets are at the boundary
or above it, those in `pending_low` and `emitted` below it. The sum over all places is M. What is in one bucket obeys
the chain rule after each insert into it; a split may break it until the next one.

**Costs**, of N rows kept, U of them below the frontier of a read, K chains: an insert is O(log N) amortised, a read is
O(U log K) plus O(log of the domain) for the buckets, and rows ahead of the frontier cost it nothing but the splits that
each of them goes through once a bit of its distance. The buffer contains M's rows, and those that would cancel but are
in different chains until a merge brings them together. `totals` (totals.py) says how many, and is never counted again.

**Separate.** Choices are arithmetic over times and numbers of rows, whatever holds the rows: which buckets to open and
to halve (buckets.py), which chains of a bucket to merge (chain_rule.py, stack.py), how (`strategy_for`). So a plan
makes them over batches of which it knows the parts' bounds and row counts. Rows are kept by chain.py, forwarding.py
and buffer.py.
"""
