"""Spark's own doors to collections: the format `tidemark` for `spark.read` and `spark.readStream`, and views by name.

    options.py  what a reader's options ask: the same questions as those of `import tidemark`
    refusal.py  how a refusal reaches the caller as one line
    source.py   the data source as Spark calls it
    rows.py     the rows of the tasks of a question, in the columns that Spark asked for
    stream.py   changes, one seal a micro-batch
    seals.py    which seals there were, from the versions of the log
    views.py    `register`: collections as temporary views

Modules of the data source are imported by every Python worker of Spark that serves it: what they import at their top
is the standard library, errors and the names of pyspark.
"""
