"""Nodes: what backends offer, cordon and drain, what is used of them.

- node_sync: keeps the store up to date with what backends offer; what ran on lost nodes ends
- node_cordon: cordon, uncordon, drain, declare lost; backends that are gone
- backend_notes: what administrators say about a backend
- node_list: nodes and backends with what is used of them

In: offers of backends (from the loop), requests of administrators. Out: rows, views.
"""
