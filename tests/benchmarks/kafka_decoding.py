"""CPU seconds to decode messages of about 200 bytes into Arrow, without a broker.

python -m tests.benchmarks.kafka_decoding --rows 200000
"""

import argparse
import os
import time

from pyspark.sql.types import DataType, DecimalType, LongType, StringType, TimestampType
from tests.benchmarks.kafka_messages import FORMATS, REGISTERED, message, value_of
from tests.support.registry import registry

from sluice.sources.kafka.records import Message, arrange_messages
from sluice.sources.kafka.rows import DecodedColumn, decode_all, reader_of

TYPES: dict[str, DataType] = {
    "order_id": LongType(),
    "customer_id": LongType(),
    "amount": DecimalType(12, 2),
    "at": TimestampType(),
    "note": StringType(),
}
COLUMNS = [DecodedColumn(name, type_, StringType()) for name, type_ in TYPES.items()]


def main() -> None:
    """Measure every format."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    rows = parser.parse_args().rows
    with registry(REGISTERED) as address:
        os.environ["AIRFLOW_CONN_BENCH_REGISTRY"] = address
        for format_ in FORMATS:
            key = ("order_id",) if format_.startswith("debezium") else ()
            reader = reader_of(value_of(format_), key, "bench")
            pairs = (message(n, format_) for n in range(rows))
            sent = arrange_messages(
                Message(n % 4, n, 1_714_557_600_000, *pair) for n, pair in enumerate(pairs)
            )
            began = time.process_time()
            decode_all("bench", COLUMNS, sent, reader)
            used = time.process_time() - began
            print(f"{format_}: {rows:,} rows, {used:.2f} CPU s, {rows / used:,.0f} rows/s")


if __name__ == "__main__":
    main()
