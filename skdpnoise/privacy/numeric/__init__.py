"""Losses without a closed form: compositions of curves, evaluated on a lattice, rounded up."""
