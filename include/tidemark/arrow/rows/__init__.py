"""Batches of rows in memory: their schemas, order, digests, consolidation, cuts, conditions. No file is opened here."""
