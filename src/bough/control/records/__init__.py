"""Looking back: audit, history, events, GPU time."""
