"""Benchmarks in the Hub's repository layout: Parquet, a dataset card, Croissant metadata, and the push.

`layout` writes the Parquet, `card_text` reads what people wrote about a benchmark (`cards/<name>.md`),
`fields` names and describes columns, `dataset_card` and `croissant` write the two documents, `earlier` keeps
what is published at a place already from being lost, `hub` uploads all of it in one commit. `publication`
puts the parts together: it holds `publish`.
"""
