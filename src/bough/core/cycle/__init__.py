"""The scheduling cycle: `plan()` and its passes; order, victims; presets as values."""
