"""Solvers of linear models: each plans on public facts and released numbers, and runs on rows."""
