"""Where pictures lie, which are missing, and what they hash to."""

COCO_PICTURES = "https://s3.amazonaws.com/images.cocodataset.org/unlabeled2017/"
"""COCO's unlabeled pictures, in its own bucket: its name `images.cocodataset.org` has no certificate."""
