"""What every room of the suite needs and no library has: progress, paths, parallel jobs, atomic writes, tables."""
