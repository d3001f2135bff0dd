"""A lookup of many facts, whose plans are looked at."""

from decimal import Decimal

from tests.support.lake import Lake

DECLARED = """
sources:
  sales: {path: "s/{interval_start:%Y}/", key: [id], schema: "id INT, product INT, buyer INT"}
dimensions:
  products: {path: p/, schema: "product INT, price DECIMAL(6,2)", key: [product]}
  buyers: {path: b/, schema: "buyer INT, region STRING", key: [buyer]}
views:
  invoices:
    kind: lookup
    from: sales
    join:
      - {dimension: products, on: product = products.product}
      - {dimension: buyers, on: abs(buyer) = buyers.buyer, type: left}
    select: {price: products.price, region: buyers.region}
    refresh: true
"""
FACTS = [{"id": i, "product": i % 40, "buyer": i % 7} for i in range(400)]


def filled(lake: Lake) -> Lake:
    lake.put("sales", *FACTS)
    lake.put("products", *({"product": i, "price": Decimal(i)} for i in range(39)))
    lake.put("buyers", *({"buyer": i, "region": f"r{i}"} for i in range(5)))
    return lake
