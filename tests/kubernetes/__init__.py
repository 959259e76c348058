"""Tests on a real apiserver with nodes that are made up.

bed          builds and starts etcd, kube-apiserver and kwok
"""
