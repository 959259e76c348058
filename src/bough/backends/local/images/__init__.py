"""Images in a folder of the server, run by the sandbox without a container runtime.

A submission asks `ImageFolder.fault`; the preparation of a task asks `ImageFolder.open`.

    image_folder    which images there are, and their root folders
    oci_archive     unpacks an OCI archive into a root folder
"""
