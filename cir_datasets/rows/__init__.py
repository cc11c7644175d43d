"""The typed rows of a benchmark, their checks and hashes, and the `Benchmark` made of them."""
