"""Objects of Kueue."""
