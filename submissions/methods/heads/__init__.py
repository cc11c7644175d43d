"""Small trained parts on top of an encoder that stays as it is: their modules, checkpoints and training.

`concat` and `mapping_network` (Pic2Word) are heads of a few layers, kept in folders that `checkpoints`
writes; `magiclens` is a whole encoder in Hugging Face format. Modules with torch in them are imported only
where a method or a training needs them.
"""
