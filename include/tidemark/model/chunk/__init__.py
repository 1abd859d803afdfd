"""Chunks: where a sequence of rows is cut, what is known of a chunk unopened, and which chunks a question needs.

A chunk is a short run of rows in a fixed order. At rest it is a row group of a part; in a landing folder it is a file.
A *timeline* is an integer or timestamp column by which questions about time are asked. A row whose value on a timeline
is null is not on that timeline: it is in no range of it and never the latest row.

**Parts.**

    law.py        the pruning law: whether a chunk can matter to a read, by what is known of it unopened
    bounds.py     what is known of one column: its least and greatest value, its nulls
    cuts.py       the one law of cutting: a chunk ends before a row, after a row, or from outside; the reason is kept
    chunk.py      a row, a chunk, and how two chunks are joined
    metadata.py   per timeline the first and last time, nulls and sortedness; the same for each column's values
    index.py      an interval index: which chunks overlap a range, and which can hold the latest row, best first
    forest.py     several indexes asked as one, with insertions; and descents, from parts to the chunks below them
    latest.py     the law of `latest_at` and `range` over chunks: the order of opening, and when reading may stop

**An example.** Rows at 10, 20, 30, 5, 40 on the timeline t, cut by N = 3: the row at 5 would unsort a chunk of three
sorted rows, so the chunk ends before it.

    >>> from tidemark.model.chunk.cuts import Appender, Arrival, CutRules
    >>> appender, chunks = Appender(CutRules(unsorted_rows=3)), []
    >>> for time in (10, 20, 30, 5, 40):
    ...     appender, cuts = appender.appended(Arrival({"t": time}))
    ...     chunks += [(cut.chunk.rows, cut.reason.value) for cut in cuts]
    >>> _, cut = appender.closed("end")
    >>> [*chunks, (cut.chunk.rows, cut.reason.value)]
    [(3, 'would_unsort'), (2, 'end')]

The chunks span [10, 30] and [5, 40]. Both overlap [25, 28]. For the latest row at 28 both can hold it: the bound of
each is the smaller of its last time and 28. The first chunk answers 20 and the second 5; neither may be left out,
as both bounds are 28. At 60 the bounds are 30 and 40: the second chunk is opened, answers 40, and as 40 is above 30
the first one stays shut.

    >>> from tidemark.model.chunk.index import IntervalIndex
    >>> index = IntervalIndex([(10, 30, "first"), (5, 40, "second")])
    >>> sorted(index.overlapping(25, 28).items), sorted(index.overlapping(35, 60).items)
    (['first', 'second'], ['second'])
    >>> list(index.falling(60))
    [(40, 'second'), (30, 'first')]

**Invariants.**

    cuts          a chunk holds at least one row; joined in order, the chunks are the sequence
    bounds        may be too wide, never too narrow; a chunk without bounds on a timeline has no row on it
    latest_at     whatever the cuts, and however much too wide the bounds, the answer is the same
    stop          only when the time found is above the bound of every chunk that is still shut: an equal bound may hold
                  a row that wins the tie, or the retraction of the row found

**Costs**, of N chunks of which K are found: an index is built in O(N log N); a range costs O(log N + K) where the found
chunks are neighbours, and at most O(log N) for each of them wherever they are; each chunk of `falling` costs O(log N).
A forest pays that for each of its runs, of which single insertions leave O(log N); an insertion is O(log N) amortised.
A row costs the cut law O(timelines + columns).
"""
