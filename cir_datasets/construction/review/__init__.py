"""Reviews by people: one page and one table, made of a form in YAML; answers read back, checked and compared.

A form (`forms/*.yaml`, or anybody's file) says which pictures and texts of an item are shown and what is
asked: choices, texts, numbers, stars, and pictures to sort. `page` writes what people fill in, `answers`
reads and checks it, `agreement` puts several people's answers together.
"""
