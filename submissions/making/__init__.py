"""The construction pipelines' encoders, language backends and Ray workers."""
