"""A small cluster on the loopback: a real apiserver and etcd; kwok plays the kubelets.

`go.mod` says which versions; no package of Debian or PyPI carries an apiserver of today.
`python -m tests.kubernetes.bed` starts one to try things on by hand.

build        makes the three programs, and keeps them in the user's cache folder
certificates the authority of a bed, and what its servers show
process      one program that ends with the process which started it
cluster      the three programs together: ready, restarted, paused, ended
objects      nodes and pods to put on it
audit        what was asked of the apiserver, by its own log
__main__     a bed for one's own hands
stages.yaml  what the made-up kubelets do with pods, by annotation
"""
