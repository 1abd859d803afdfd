"""Derived collections computed by Spark: the inputs as views, the definition over them, by how much the collection
differs from it, written by executors."""
