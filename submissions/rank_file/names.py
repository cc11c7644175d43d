"""What rank files, bundles and formats call themselves."""

from __future__ import annotations

RANK_FILE = "cir-rank-file"
"""What a native rank file says under "format"."""
BUNDLE = "cir-rank-bundle"
"""What a bundle says there."""
LINES_FILE = "cir-rank-file-lines"
"""What the first line of a rank file in JSON Lines says there."""
FORMAT_VERSION = 1

NATIVE = "native"
CIRR_SERVER = "cirr-server"
CIRCO_SERVER = "circo-server"
ZEROSIGHT = "zerosight"
FASHIONIQ = "fashioniq"
LINES = "lines"
PARQUET = "parquet"
TREC = "trec"
FORMATS = (NATIVE, LINES, PARQUET, TREC, CIRR_SERVER, CIRCO_SERVER, ZEROSIGHT, FASHIONIQ)
"""Names of the formats that `convert` writes."""
