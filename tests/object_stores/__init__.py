"""Real object stores for the tests, on the loopback: versitygw, fake-gcs-server, azurite."""
