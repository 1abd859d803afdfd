"""Pure decisions: from a state to a request, or to nothing to do. No IO, no clock, no Spark."""
