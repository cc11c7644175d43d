"""The formats that are read and written, told apart by what a file holds, never by its name.

A format is a module with `parse(document or content, context) -> UncheckedFile | None`, and `dump` where it
is written; whatever the format, rankings end in `Columns`. Where content cannot tell two formats apart
(CIRCO's and ZeroSight's), the benchmark that the caller names does. JSON Lines and Parquet hold the native
form in another container: what is read from them is of the format `native`.
"""
