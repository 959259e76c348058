"""The commands, one module for each word after `bough`: arguments, and which text is printed."""
