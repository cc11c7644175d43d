"""What all rooms need and no library has: progress, paths, parallel jobs, atomic writes, tables."""
