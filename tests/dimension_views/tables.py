"""Two small dimensions to read views of."""

import pyarrow as pa


def products(rows):
    ids, names, brands = zip(*rows, strict=True)
    kinds = {"product_id": pa.int32(), "name": pa.string(), "brand_id": pa.int32()}
    values = zip((ids, names, brands), kinds.items(), strict=True)
    return pa.table({name: pa.array(column, kind) for column, (name, kind) in values})


def brands(rows):
    ids, names = zip(*rows, strict=True)
    return pa.table({"brand_id": pa.array(ids, pa.int32()), "brand": pa.array(names, pa.string())})
