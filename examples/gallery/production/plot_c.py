"""
Models as C source
==================

Does a C program answer as Python does?

`export` also writes a model as C source without any dependency. This example compiles it, if
there is a C compiler, and draws what a program of ten lines answers.
"""

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, size=(800, 2))
y = np.digitize(X[:, 0] + 0.5 * X[:, 1] + rng.normal(scale=0.2, size=800), [-1, 0, 1])
model = rc.PRank(random_state=0).fit(X, y)

folder = Path(tempfile.mkdtemp())
rc.export(model, folder / "stars.c", "c")
print((folder / "stars.h").read_text()[-700:])

# %%
# The program is a function that fills a grid of ranks, so that a picture can be drawn.
# ``-ffp-contract=off`` keeps the compiler from rounding otherwise than Python: results are the
# same to the bit.

program = """
#include "stars.h"
void fill(const double *points, int *ranks, int n) {
    for (int i = 0; i < n; i++)
        ranks[i] = stars_rank(points + 2 * i);
}
"""
(folder / "fill.c").write_text(program)
axis = np.linspace(-2, 2, 150)
grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
ranks = model.predict(grid)
if compiler := shutil.which("cc"):
    flags = [compiler, "-std=c99", "-O2", "-ffp-contract=off", "-shared", "-fPIC"]
    library = folder / "fill.so"
    subprocess.run([*flags, folder / "fill.c", folder / "stars.c", "-o", library], check=True)
    there = np.empty(len(grid), np.int32)
    ctypes.CDLL(str(library)).fill(
        grid.ctypes.data_as(ctypes.c_void_p), there.ctypes.data_as(ctypes.c_void_p), len(grid)
    )
    print("points with another rank:", int((there != ranks).sum()))
    ranks = there

# %%
# The ranks of 22,500 points, from the compiled program. Its borders are PRank's thresholds;
# points are rows that Python learned from.

fig, ax = plt.subplots(figsize=(4.8, 4.2), layout="constrained")
ax.pcolormesh(axis, axis, ranks.reshape(150, 150), cmap="Blues", vmin=-1, vmax=4)
ax.scatter(*X[:200].T, c=y[:200], s=22, cmap="Blues", vmin=-1, vmax=4, edgecolor="black", lw=0.6)
ax.set(xlabel="feature 1", ylabel="feature 2")
plt.show()
