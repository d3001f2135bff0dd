"""Settings by which Spark reads and commits on S3, by Hadoop's S3A.

A commit must fail if its version is there. The log store asks S3A to create a version's file by a
`PUT` with `If-None-Match: *`, as delta-rs does. So both may meet on one table, in any processes.
Delta's own log store for S3 has a lock of one JVM in its place.

Credentials are in no setting: the JVM takes them from its environment, a profile or a role, and
sends them to its workers.
"""

from sluice.declare.stores import S3
from sluice.delta.places.delta_rs import endpoint_of, region

_PROVIDERS = (
    "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider",
    "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
)


def conf() -> dict[str, str]:
    """Return the configuration of a Spark to start."""
    hadoop = {f"spark.hadoop.fs.{name}": value for name, value in _settings().items() if value}
    return {**S3.conf, **hadoop}


def _settings() -> dict[str, str]:
    endpoint = endpoint_of("s3://")
    return {
        "s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "s3a.input.stream.type": "classic",  # the newer one prefetches column chunks
        "s3a.create.checksum.algorithm": "SHA256",  # required with object lock
        "s3a.aws.credentials.provider": ",".join(_PROVIDERS),
        "s3a.endpoint": endpoint,
        "s3a.endpoint.region": region(),
        "s3a.path.style.access": "true" if endpoint else "",
    }
