"""Vectors of whole galleries: made, kept, resumed, spread over machines."""
