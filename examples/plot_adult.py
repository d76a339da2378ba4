"""
A whole table in five lines
===========================

Numbers, categories and missing values: ``DPTableVectorizer`` makes columns of them, and a private
logistic regression learns who earns more than 50,000 dollars a year.

The data are Adult where its files are (``fetch_adult`` says how to get them), else a simulated
table with a few similar columns: the title of the picture says which.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from _style import line
from sklearn.base import clone
from sklearn.metrics import roc_auc_score, roc_curve

from skdpnoise import DPLogisticRegression, DPPipeline, DPTableVectorizer
from skdpnoise.datasets import fetch_adult


def load():
    """Return a name, and records to fit to and to try on."""
    try:
        options = {"as_frame": True, "return_X_y": True, "download_if_missing": False}
        return (
            "Adult",
            *fetch_adult(subset="train", **options),
            *fetch_adult(subset="test", **options),
        )
    except OSError:
        rng = np.random.default_rng(0)
        n = 30_000
        X = pd.DataFrame(
            {
                "age": rng.integers(17, 91, n),
                "hours-per-week": np.clip(rng.normal(40, 12, n), 0, 100),
                "sex": rng.choice(["Female", "Male"], n),
                "education": rng.choice(["HS-grad", "Bachelors", "Masters"], n, p=[0.6, 0.3, 0.1]),
                "capital-gain": np.where(rng.random(n) < 0.08, rng.lognormal(8.5, 1, n), 0.0),
            }
        )
        score = 0.05 * (X["hours-per-week"] - 55) - 0.001 * (X["age"] - 50) ** 2
        score += 1.2 * (X["education"] != "HS-grad") + 3.0 * (X["capital-gain"] > 5_000)
        rich = rng.random(n) < 1 / (1 + np.exp(-score))
        y = pd.Series(np.where(rich, ">50K", "<=50K"))
        half = n // 2
        return "simulated table", X[:half], y[:half], X[half:], y[half:]


name, X, y, X_test, y_test = load()

# %%
# The five lines. The schema says what is public knowledge: bounds from a questionnaire, lists
# from a code book. It must not be read from the data. What it leaves open is bought within ε.

schema = {
    "age": (17, 90),
    "hours-per-week": (0, 100),
    "capital-gain": "log",
    "sex": ["Female", "Male"],
}
table, classifier = DPTableVectorizer(schema), DPLogisticRegression(classes=["<=50K", ">50K"])
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of columns that the schema leaves to their type
    model = DPPipeline([("table", table), ("model", classifier)], epsilon=1.0).fit(X, y)
print(f"accuracy on {len(y_test):,} other people: {model.score(X_test, y_test):.3f}")

# %%
# The same five lines at other values of ε, each with a budget of its own.

figure, ax = plt.subplots(figsize=(5.8, 5.2), layout="constrained")
truth = np.asarray(y_test) == ">50K"
for epsilon, style in ((0.01, "third"), (0.1, "second"), (1.0, "inid")):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = clone(model).set_params(epsilon=epsilon).fit(X, y)
    chance = fitted.predict_proba(X_test)[:, 1]
    curve = roc_curve(truth, chance)
    label = f"ε = {epsilon:g}: area {roc_auc_score(truth, chance):.3f}"
    ax.plot(curve[0], curve[1], label=label, **line(style, linewidth=2))
ax.plot([0, 1], [0, 1], label="by chance", **line("baseline"))
ax.set(xlabel="false positive rate", ylabel="true positive rate", aspect="equal")
ax.set_title(f"ROC curves on public test rows, {name}")
ax.legend(loc="lower right")
plt.show()
