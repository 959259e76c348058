"""Nodes: what backends offer, cordon and drain, what is used of them."""
