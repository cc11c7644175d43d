"""`load_dataset` by name: the hook, the one `datasets` builder, attached images."""
