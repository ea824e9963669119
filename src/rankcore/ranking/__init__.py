"""Learning to rank documents within queries."""
