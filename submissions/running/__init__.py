"""From a benchmark and a method to a rank file."""
