"""How derived collections are computed. A computation goes through these rooms, each of which imports those above it:

    views, reading   what the inputs hold at the frontiers that were chosen, what changed of them, and what the
                     collection itself holds: as Arrow batches, as tasks for executors, or as Spark frames
    here/            what this process reads, compares and writes itself, within bounds of rows and bytes
    reach/           which instants changed, and which stretches of time they reach
    executors/       executors that read ranges of an input's key, and compare what comes out with what is stored
    queries/         Spark SQL: general selects, joins of large inputs, rows that count for a limited time, and values
                     of single rows for a kernel
    kinds/           the only room that knows a kind: what groups, windows and joins give each place
    place            which place takes the computation: this process, executors, or queries; by size only
    computer         the whole, as jobs ask for it

A worked example: `delays_by_hour` groups 2,000,000 flights by origin and hour, without those that were cancelled.

1. Its recipe has a projection (the condition, the hour of a time) and `Grouped`: keys, aggregates. `place.kind_of` says
   `kinds.groups.Groups`.
2. The first build: `place.here` asks Groups for a gathering. 2,000,000 flights are read batch by batch, each batch is
   projected and grouped, and the groups of batches are put together: some 90,000 groups are kept, and no flights.
3. A day later 20,000 flights changed. `place.near` reads these, finds 900 groups that they touch, reads the flights of
   these groups by ranges of the input's key, groups them, and writes by what they differ from the rows stored.
4. Of 200,000,000 flights `here` says how many they are, and takes none. `place.key_ranges` takes them if origin leads
   the input's key; else `place.shuffle` sends the groups of what each task reads to where theirs are put together.

Every place writes the same updates, bit by bit: tests close all places but one (tests/spark/ways.py)."""
