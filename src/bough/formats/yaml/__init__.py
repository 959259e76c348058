"""YAML into typed values that know their lines."""
