"""The construction pipeline of FISD (Liu et al., arXiv:2604.12904, section 3.1 and supplement A).

A source caption is edited in one of six aspects; a generator draws the pictures of caption, edited caption
and hard negative with one seed, so that they differ in what the words say and in little else; a person looks
them over; what remains is a benchmark.
"""
