"""Small top-k tables to read."""

from decimal import Decimal

import pyarrow as pa

MONEY = pa.decimal128(12, 2)


def ranked(rows, rank=True):
    """Rows of (department, product, total, rank)."""
    columns = list(zip(*rows, strict=True))
    table = pa.table(
        {
            "department": pa.array(columns[0], pa.string()),
            "product_id": pa.array(columns[1], pa.int32()),
            "total": pa.array([None if v is None else Decimal(v) for v in columns[2]], MONEY),
        }
    )
    return table.append_column("rank", pa.array(columns[3], pa.int32())) if rank else table


LEADERS = [
    ("DELI", 2, "5.00", 2),
    ("DELI", 1, "9.50", 1),
    ("MEAT", 3, "7.00", 1),
    (None, 4, "1.00", 1),
]
