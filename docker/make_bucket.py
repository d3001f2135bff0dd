"""Create a bucket in the store of a deployment, and wait until the store accepts objects.

`python make_bucket.py NAME`. Server and keys come from the environment. It is safe to repeat.
"""

import os
import sys
import time

from pyarrow.fs import S3FileSystem

PATIENCE = 120  # seconds: a store's volumes start after its port


def main() -> None:
    """Create the bucket."""
    bucket = sys.argv[1]
    store = S3FileSystem(
        endpoint_override=os.environ["AWS_ENDPOINT_URL"],
        region=os.environ["AWS_REGION"],
        allow_bucket_creation=True,
    )
    end = time.monotonic() + PATIENCE
    while not _takes(store, bucket):
        if time.monotonic() > end:
            sys.exit(f"the store accepts no objects in bucket {bucket}; see its log")
        time.sleep(1)
    print(f"the store has bucket {bucket}")


def _takes(store: S3FileSystem, bucket: str) -> bool:
    try:
        store.create_dir(bucket)
        store.open_output_stream(f"{bucket}/ready").close()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
