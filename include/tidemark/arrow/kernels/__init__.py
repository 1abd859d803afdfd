"""What executors run: one module a task of `plan/tasks.py`, each in bounded memory, each answering with what it wrote.

`registry` finds the kernel of a task.
"""
