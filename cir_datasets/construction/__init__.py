"""Making benchmarks: the construction pipelines of CIRCLED, CIRR, ZeroSight and FISD.

Each pipeline is a row of stages in a folder (`workspace`). What it asks of models is passed in
(`backends`), so that nothing here loads one. Its result is a benchmark (`folder`) and a page about how it
came to be (`report`). `cir make` ties a pipeline to encoders and language backends.
"""
