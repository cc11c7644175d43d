"""The construction pipelines' encoders and language backends."""
