"""
Changes that change a rank
==========================

What would change this rank?

An ordinal model divides a line by thresholds. The explanation of a row shows its distance from each
threshold, the contribution of each feature, and the value of each feature that alone would change
the rank.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
data = load_diabetes(as_frame=True, scaled=False)
names = {"bp": "blood pressure", "s5": "triglycerides (log)", "s3": "HDL", "s6": "glucose"}
X = data.data.rename(columns=names)[["age", "bmi", *names.values()]]
# Five grades of the progression of diabetes in 442 patients, of 88 or 89 each.
y = pd.qcut(data.target, 5, labels=False) + 1
train, test = np.arange(442) < 300, np.arange(442) >= 300
scaler = StandardScaler().set_output(transform="pandas")
model = make_pipeline(scaler, rc.PRank(random_state=0)).fit(X[train], y[train])

patient = X[test].iloc[[6]]
why = rc.explain.rank(model, patient, background=X[train])
print(why.headline())

# %%
# From the average patient to this one: each feature moves the score along the line, blue up and
# orange down, through the thresholds. The printed table has the value of each feature that would
# alone change the grade, in the feature's own unit. The model describes associations, not effects
# of treatment.

fig, ax = plt.subplots(figsize=(4.8, 4), layout="constrained")
why.plot(ax=ax)
plt.show()

# %%
print(why)
