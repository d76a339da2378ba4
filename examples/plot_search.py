"""
Tuning inside the guarantee
===========================

How strongly to penalise is a question to the data, and its answer tells something about them. A
private search pays for it: one (ε, δ) covers all candidates, the choice, its score and the final
model.
"""
