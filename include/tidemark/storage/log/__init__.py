"""The state log: versions, the head, what they name, and the collector's plans. Only here are versions created."""
