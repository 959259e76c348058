"""Objects of Kubernetes that several readers share."""
