#!/usr/bin/env bash
# Debian packages that the tests use for real: PostgreSQL, bubblewrap, slirp4netns, rsync,
# mmdebstrap and libfaketime.
# Where they cannot be installed this says so and goes on; the tests that need them are then
# skipped, but not in CI.
set -euo pipefail

missing=()
ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || command -v postgres >/dev/null \
    || missing+=(postgresql)
command -v bwrap >/dev/null || missing+=(bubblewrap)
command -v slirp4netns >/dev/null || missing+=(slirp4netns)
command -v rsync >/dev/null || missing+=(rsync)
command -v mmdebstrap >/dev/null || missing+=(mmdebstrap)
ls /usr/lib/*/faketime/libfaketimeMT.so.1 >/dev/null 2>&1 || missing+=(libfaketime)

if [ ${#missing[@]} = 0 ]; then
    exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "not installed, since that needs root on Debian: ${missing[*]}; tests of these are skipped" >&2
    exit 0
fi
echo "The tests use these Debian packages, which are installed now: ${missing[*]}" >&2
echo "(without root nothing is installed, and the tests that need them are skipped)" >&2
apt-get update --quiet \
    && DEBIAN_FRONTEND=noninteractive \
        apt-get install --quiet --yes --no-install-recommends "${missing[@]}" \
    || echo "could not be installed: ${missing[*]}; tests of these are skipped" >&2
