"""The version of this release, and nothing else: read by the build and by `bough --version`."""

VERSION = "0.1.0"
