"""What the text of a definition says: its inputs, its key, and from which of their rows it can be kept right. Parsed by
sqlglot; nothing is read and no Spark is started."""
