"""Windows: which rows belong together by when they happened, and what is computed of them."""
