"""Object stores, as URLs name them: `s3://`, `gs://`, `azure://`.

No server, backend or task is known here.

The library obstore speaks to the stores. What it cannot do is a multipart upload that goes on in
another process, so requests for that are signed here.

    opening       a URL and a credential, as a store to speak to
    failures      what went wrong, in a sentence that names the URL and never a secret
    listing       the objects at and below a URL
    fetching      objects into files: resumed, and compared with their checksums
    sending       files into objects: resumed, each with its checksum
    user_data     what `bough data` does with such URLs
    s3_requests   signed requests to S3
    s3_multipart  the parts of one upload to S3, of which those that arrived are not sent again
"""
