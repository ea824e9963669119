"""The model that answers on the home page: trained here, scored there by WebAssembly."""

import json
import shutil
from pathlib import Path

import numpy as np
from sphinx.errors import ExtensionError

ROOT = Path(__file__).resolve().parents[2]
# How much a word adds to the worth of a review; those of 0 say nothing.
WORTH = {
    2.0: "brilliant masterpiece superb wonderful perfect stunning flawless",
    1.2: "great excellent lovely moving charming delightful gripping memorable",
    0.7: "good funny clever fresh warm enjoyable solid nice fine",
    0.0: "film movie story plot scene actor music ending book camera cast director dialogue",
    -0.5: "long loud odd uneven predictable plain",
    -1.0: "slow weak flat clumsy tired bland shallow thin",
    -1.5: "boring dull bad silly messy pointless lifeless",
    -2.2: "awful terrible horrible worst unwatchable dreadful",
}
EXAMPLE = "a superb cast and a lovely ending but the plot is slow and predictable"


def reviews(n: int = 6000):
    """Generate reviews: counts of words, and stars from 1 to 5."""
    rng = np.random.default_rng(0)
    worth = {word: value for value, words in WORTH.items() for word in words.split()}
    words = sorted(worth)
    counts = np.zeros((n, len(words)))
    for row in counts:
        for column in rng.integers(len(words), size=rng.integers(2, 11)):
            row[column] += 1
    latent = counts @ [worth[word] for word in words] + rng.logistic(scale=0.5, size=n)
    return words, counts, np.digitize(latent, [-3, -1, 1, 3]) + 1


def trained():
    import pandas as pd

    import rankcore as rc

    words, counts, stars = reviews()
    frame = pd.DataFrame(counts, columns=words)
    return rc.CalibratedOrdinal(rc.PRank(random_state=0)).fit(frame, stars), words


def row_of(text: str, words: list[str]) -> np.ndarray:
    found = text.lower().split()
    return np.array([[float(found.count(word)) for word in words]])


def picture(model, words, path: Path) -> None:
    """Write what the page shows without JavaScript: the stars of the example."""
    import matplotlib.pyplot as plt
    import pandas as pd

    import rankcore as rc

    row = pd.DataFrame(row_of(EXAMPLE, words), columns=words)
    shares = model.predict_proba(row)[0]
    with plt.style.context(rc.plotting.STYLE):
        fig, ax = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
        ax.barh([f"{stars} stars" for stars in model.classes_], shares, color=rc.plotting.BLUE)
        for place, share in enumerate(shares):
            ax.text(share + 0.01, place, f"{share:.0%}", va="center")
        ax.set(xlim=(0, 1), title=f"“{EXAMPLE}”")
        ax.title.set_fontsize("small")
        fig.savefig(path, dpi=100)
        plt.close(fig)


def card(path: Path) -> None:
    """Write the picture that other sites show beside a link."""
    import matplotlib.pyplot as plt

    fig = plt.figure(figsize=(12, 6.3), facecolor="#0072b2")
    fig.text(0.08, 0.55, "rankcore", color="white", fontsize=72, weight="bold")
    words = "Learning to rank: exact, online, sparse-native"
    fig.text(0.08, 0.38, words, color="white", fontsize=30)
    for i, height in enumerate([0.1, 0.24, 0.17]):
        fig.add_artist(plt.Rectangle((0.8 + i * 0.05, 0.1), 0.03, height, color="white"))
    fig.savefig(path, dpi=100, facecolor=fig.get_facecolor())
    plt.close(fig)


def write(app):
    folder = Path(app.srcdir) / "_static" / "live"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ["rankcore.js", "rankcore.wasm"]:
        source = ROOT / "build" / "web" / name
        if not source.exists():
            raise ExtensionError(f"{source} is missing: run `make docs`")
        shutil.copy(source, folder)
    made = folder / "stars.rankcore"
    if made.exists() and made.stat().st_mtime > Path(__file__).stat().st_mtime:
        return
    import rankcore as rc

    model, words = trained()
    picture(model, words, folder / "stars.png")
    card(folder / "card.png")
    (folder / "example.json").write_text(json.dumps(EXAMPLE), encoding="utf-8")
    rc.save(model, made)


def setup(app):
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True}
