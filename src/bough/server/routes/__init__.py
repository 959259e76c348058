"""The handlers, a module for each kind of thing, and the table of all of them."""
