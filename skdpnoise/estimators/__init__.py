"""What all private estimators share: a sealed way into a fit, and errors that show no value.

Nothing here is public:

- ``private_fit``: the one way into a private fit, which uses the other files;
- ``parameters``: every parameter is checked, and what memory and 64-bit sums will bear;
- ``tables`` and ``targets``: data are converted and checked, by messages that quote none of them;
- ``seal``: no warning and no floating-point error tells what private values did;
- ``scores``: the same for scores of fitted models.
"""

__all__: list[str] = []
