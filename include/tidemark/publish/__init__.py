"""Tables of others' formats that hold what a collection holds: Iceberg by pyiceberg, Delta by deltalake.

Each format is one class behind the same four calls (table.py). Nothing here decides what is written (plan/publish.py).
"""
