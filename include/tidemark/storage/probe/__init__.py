"""The store is asked before it is trusted: what it answers, and the certificate of one that kept its promises."""
