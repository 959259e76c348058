"""Object stores, as URLs name them: `s3://`, `gs://`, `azure://`.

Knows nothing of servers, backends and tasks. The library obstore talks to the stores. It cannot
resume a multipart upload in another process, so the requests for that are signed here.

    opening       opens a store by its URL and a credential
    failures      what went wrong, in a sentence that names the URL but never a secret
    listing       the objects at and below a URL
    downloading   downloads objects into files: resumable, checked against their checksums
    uploading     uploads files as objects: resumable, each with its checksum
    user_data     what `bough data` does with such URLs
    s3_requests   signed requests to S3
    s3_multipart  one upload to S3 in parts; parts that arrived are not sent again
"""
