"""Rank files made of rank files: convert and fuse."""
