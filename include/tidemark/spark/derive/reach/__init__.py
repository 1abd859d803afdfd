"""What changes reach: the instants that changed, and the stretches of time near them."""
