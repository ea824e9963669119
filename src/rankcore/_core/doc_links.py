"""Links to the guides of learners, shown by scikit-learn's HTML form."""

from __future__ import annotations

from importlib.metadata import metadata

# The guide to the learners of a package or module; the longest name wins.
GUIDES = {
    "rankcore.boosting": "boosting",
    "rankcore.boosting.ordinal_boost": "ordinal_boost",
    "rankcore.ordinal": "ordinal",
    "rankcore.ordinal.calibrated": "probabilities",
    "rankcore.ordinal.kernel": "kernels",
    "rankcore.ordinal.rule": "own_rule",
    "rankcore.preference": "preference",
    "rankcore.ranking": "pairwise",
    "rankcore.ranking.svm": "ranksvm",
    "rankcore.structured": "structured",
}


def guide_to(module: str) -> str:
    """Guide to the learners of a module; empty if there is none."""
    known = [name for name in GUIDES if f"{module}.".startswith(f"{name}.")]
    return GUIDES[max(known, key=len)] if known else ""


def documentation_url() -> str:
    """URL of the guides in the metadata of the installed release; empty if there is none."""
    for entry in metadata("rankcore").get_all("Project-URL", []):
        label, _, url = entry.partition(",")
        if label.strip().lower() == "documentation":
            return str(url.strip().rstrip("/"))
    return ""


class Documented:
    """Mixin that links the HTML form of an estimator to its guide. Not public."""

    _doc_link_module = "rankcore"

    @property
    def _doc_link_template(self) -> str:
        url, guide = documentation_url(), guide_to(type(self).__module__)
        return f"{url}/{guide}.html" if url and guide else ""
