"""Deciding again and again: see, snapshot, plan, apply, tell the backends."""
