"""What this process computes, compares and writes itself: reading so little, a job of Spark would cost more."""
