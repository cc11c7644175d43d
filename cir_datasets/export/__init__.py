"""Other forms of a benchmark: qrels, files of evaluators, templates, training triplets."""
