"""Replays of fits on neighbouring data, and attacks on what they release."""
