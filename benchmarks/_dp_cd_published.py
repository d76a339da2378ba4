"""Published curves of private coordinate descent and of private stochastic gradient descent.

Relative error of the objective, (F(w) - F*) / F*, after a number of passes over the data, mean over
seeds, epsilon = 1, delta = 1/n^2, hyper-parameters tuned without charge: P. Mangold, A. Bellet,
J. Salmon and M. Tommasi, "Differentially Private Coordinate Descent for Composite Empirical Risk
Minimization", ICML 2022, arXiv:2110.11688. Read from the vector figures of the authors' talks in
the public repository pmangold/presentations; which series is which method is inferred from the
order of the plots there.
"""

from __future__ import annotations

# fmt: off
PUBLISHED: dict[str, dict[str, dict[float, float]]] = {
    "california_raw": {
        "dp_cd": {
            0: 3.40182, 5: 0.158593, 10: 0.0977667, 15: 0.0514005,
            20: 0.0334732, 25: 0.0279051, 30: 0.0256782, 35: 0.0218926,
            40: 0.0193721, 45: 0.0160534, 50: 0.0139362,
        },
        "dp_sgd": {
            0: 3.40182, 5: 1.27564, 10: 0.715267, 15: 0.483257,
            20: 0.339662, 25: 0.244652, 30: 0.181105, 35: 0.172584,
            40: 0.143691, 45: 0.134013, 50: 0.110691,
        },
    },
    "california_standardised": {
        "dp_cd": {
            0: 0.0962981, 0.5: 0.0955155, 1: 0.0110298, 1.5: 0.00929972,
            2: 0.000797572,
        },
        "dp_sgd": {
            0: 0.0962981, 5: 0.0691968, 10: 0.0456995, 15: 0.0309956,
            20: 0.0217284, 25: 0.0163494, 30: 0.0111285, 35: 0.00964191,
            40: 0.00779382, 45: 0.00649078, 50: 0.00544145,
        },
    },
    "electricity_raw": {
        "dp_cd": {
            0: 0.244749, 5: 0.0904412, 10: 0.0434725, 15: 0.0244362,
            20: 0.0159453, 25: 0.0108412, 30: 0.00698469, 35: 0.00525839,
            40: 0.00343053, 45: 0.00247598, 50: 0.0024182,
        },
        "dp_sgd": {
            0: 0.244749, 5: 0.204049, 10: 0.19291, 15: 0.187575,
            20: 0.17907, 25: 0.171085, 30: 0.17241, 35: 0.167402,
            40: 0.156815, 45: 0.159625, 50: 0.154257,
        },
    },
    "electricity_standardised": {
        "dp_cd": {
            0: 0.358628, 2.5: 0.00772136, 5: 0.00407056, 7.5: 0.00242278,
            10: 0.00249958,
        },
        "dp_sgd": {
            0: 0.358628, 5: 0.0962388, 10: 0.0439586, 15: 0.0248331,
            20: 0.0151437, 25: 0.00999723, 30: 0.00851321, 35: 0.00796344,
            40: 0.00725225, 45: 0.00704839, 50: 0.00731052,
        },
    },
}
# fmt: on
"""Data set, then method ("dp_cd", "dp_sgd"), then passes: the relative error."""
