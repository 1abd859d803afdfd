"""Batches of rows in memory: their schemas, order, digests, consolidation, cuts, predicates. No file is opened here."""
