"""Benchmarks of utility and speed: ``python -m benchmarks NAME``."""
