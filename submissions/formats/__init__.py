"""The formats that are read and written, told apart by what a file holds, never by its name.

A format is a module with `NAME` and `parse(document, context) -> UncheckedFile | None`, or, where it is not
JSON, `parse(content, context, ...)`; what is written has `dump`. The formats of others also have
`BENCHMARKS` (the datasets they belong to). Where content cannot tell two formats apart (CIRCO's and
ZeroSight's), the benchmark that the caller names does. JSON Lines and Parquet hold the native form in
another container: what is read from them is of the format `native`.
"""
