"""Small trained parts on top of an encoder that stays as it is: their modules and checkpoints.

`concat` and `mapping_network` (Pic2Word) are heads of a few layers, kept in folders that `checkpoints`
writes; how they are trained stands in `submissions.training`. Modules with torch in them are imported only
where a method or a training needs them.
"""
