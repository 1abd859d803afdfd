"""What changes a collection: one module a step, each of them plan, execute, apply, commit."""
