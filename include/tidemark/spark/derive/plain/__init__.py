"""What is so plain that it needs no query: it is computed by this process, or by executors without Spark's planning.
Whatever is not as plain as that is left to the queries, which say what is wrong, too."""
