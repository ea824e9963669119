"""
Models as SQL
=============

Does an exported model give the same scores?

`export` writes a fitted model for another program and, with ``check=``, runs it there and
compares. Here a model becomes one SQL expression, and SQLite ranks a table with it.
"""

import sqlite3
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(0)
names = ["match", "clicks", "age"]
X = rng.gamma(2, 2, size=(2000, 3))
y = np.digitize(np.sqrt(X[:, 0]) + 0.3 * X[:, 1] - 0.1 * X[:, 2], [1.5, 2.5, 3.5])
qid = np.repeat(np.arange(100), 20)
model = rc.RankBoost(40).fit(X, y, qid=qid)

path = Path(tempfile.mkdtemp()) / "ranker.sql"
rc.export(model, path, "sql", feature_names=names, check=X)
expression = path.read_text()
print(expression[:150], "...")

# %%
# The database computes the score of each row; one query returns the best documents.

with sqlite3.connect(":memory:") as database:
    database.execute("CREATE TABLE documents (id INTEGER, match REAL, clicks REAL, age REAL)")
    rows = [(i, *map(float, row)) for i, row in enumerate(X)]
    database.executemany("INSERT INTO documents VALUES (?, ?, ?, ?)", rows)
    scores = database.execute(f"SELECT id, ({expression}) FROM documents ORDER BY id")
    in_sql = np.array([score for _, score in scores])
    top = f"SELECT id FROM documents ORDER BY ({expression}) DESC, id LIMIT 5"
    best = [row[0] for row in database.execute(top)]
    print(best)

# %%
# Each point is a row: its score in Python and in SQLite. All lie on the diagonal, and the check
# above printed the largest difference, in units in the last place of the sum. Circles are what
# the query returned.

here = model.predict(X)
fig, ax = plt.subplots(figsize=(4.8, 4.6), layout="constrained")
ax.plot(here, in_sql, ".", ms=3, color=rc.plotting.BLUE)
ax.plot(here[best], in_sql[best], "o", ms=9, mfc="none", color=rc.plotting.ORANGE)
ax.set(xlabel="score in Python", ylabel="score in SQLite", aspect="equal")
plt.show()

# %%
assert np.allclose(here, in_sql, rtol=0, atol=1e-12)
