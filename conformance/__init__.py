"""Answers recorded decisions of the real Kueue and the real KAI with Bough's own engine.

Only translates: cases into the core's types, its answers back. No rule of the field stands here.
"""
