"""Objects that grow beside the state and are named by it: tables of parts, the ledger of source files, reads asked."""
