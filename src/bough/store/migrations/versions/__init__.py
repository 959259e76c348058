"""The steps; each says what was true when it was written, and imports nothing of ours."""
