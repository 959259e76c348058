"""The bed itself, the client of Kubernetes on it, and the rights that Bough has there."""
