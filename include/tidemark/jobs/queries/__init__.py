"""What is asked of a collection and changes nothing: status, history, late rows, verification."""
