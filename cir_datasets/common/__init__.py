"""What all rooms need and no library has: progress, paths, parallel jobs, staging folders, tables."""
