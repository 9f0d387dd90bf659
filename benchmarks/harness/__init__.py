"""What the rungs share: sessions, peers, records, the components that are measured."""
