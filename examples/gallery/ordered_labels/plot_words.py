"""
Weights of words
================

Which words make a review good?

A linear learner on counts of words is easy to interpret: it has one weight for each word. `PRank`
accepts the sparse rows of a vectorizer directly.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(0)
WORTH = {
    "superb": 2, "delightful": 2, "good": 1, "funny": 1, "plot": 0, "actor": 0, "scene": 0,
    "long": -0.5, "slow": -1, "dull": -1.5, "awful": -2, "boring": -2,
}  # fmt: skip
words = np.array(list(WORTH))


def review():
    some = rng.choice(words, size=rng.integers(3, 9))
    worth = sum(WORTH[word] for word in some) + rng.normal(scale=0.7)
    return " ".join(some), int(np.digitize(worth, [-3, -1, 1, 3])) + 1


texts, stars = zip(*(review() for _ in range(1500)), strict=True)
print(stars[0], texts[0])
model = make_pipeline(CountVectorizer(), rc.PRank(random_state=0)).fit(texts, stars)
print(model.predict(["a superb and funny scene", "long slow dull", "plot"]))

# %%
# Bars are learned weights; points are the weights that generated the reviews, on the same scale.
# Uninformative words have weights near zero.

learner = model[-1]
names = model[0].get_feature_names_out()
true = np.array([WORTH[name] for name in names], float)
order = np.argsort(learner.coef_)
scale = (learner.coef_ @ true) / (true @ true)
fig, ax = plt.subplots(figsize=(4.8, 4.2), layout="constrained")
weights = learner.coef_[order]
colours = np.where(weights < 0, rc.plotting.ORANGE, rc.plotting.BLUE)
ax.barh(names[order], weights, color=colours)
ax.plot(true[order] * scale, np.arange(names.size), "ko", ms=4)
ax.axvline(0, color="black", lw=0.8)
ax.set(xlabel="weight")
plt.show()
