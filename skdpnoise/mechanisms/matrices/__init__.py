"""Noise on symmetric matrices: second moments of bounded rows."""
