"""ZeroSight's pipeline (Yang et al., 2026, Section 3.2): from videos to queries with hard negatives.

Frames at one a second; a reference of each window of ten; targets of the same video whose likeness lies in a
band; a caption of each pair; the captions that agree make the query, their targets are its positives, and the
other targets its hard negatives.
"""
