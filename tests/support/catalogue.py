"""A lookup in a view of dimensions, and in a view over another one."""

CATALOGUE = """\
pipeline: p
schedule: assets
sources:
  sales: {path: s/, delivery: stream, schema: "sku INT, at TIMESTAMP"}
dimensions:
  products: {path: a/, schema: "id INT, brand INT", key: [id]}
  brands: {path: b/, schema: "id INT, name STRING", key: [id]}
  catalogue:
    join: [{dimension: products}, {dimension: brands, on: products.brand = brands.id}]
    select: {sku: products.id, brand: brands.name}
views:
  bills: {kind: lookup, from: sales, join: [{dimension: catalogue, on: sku = catalogue.sku}]}
"""
BEHIND = """\
  named: {join: [{dimension: brands}], select: {id: brands.id, name: upper(brands.name)}}
  catalogue:
    join: [{dimension: products}, {dimension: named, on: products.brand = named.id}]
    select: {sku: products.id, brand: named.name}
views:
"""
CHAINED = CATALOGUE.partition("  catalogue:")[0] + BEHIND + CATALOGUE.partition("views:\n")[2]
