"""Links to the guides of learners, shown by scikit-learn's HTML form."""

from __future__ import annotations

from importlib.metadata import metadata

from rankcore._core.declaration import declaration_of


def documentation_url() -> str:
    """Return the URL of the guides from the installed release's metadata; empty without one."""
    for entry in metadata("rankcore").get_all("Project-URL", []):
        label, _, url = entry.partition(",")
        if label.strip().lower() == "documentation":
            return str(url.strip().rstrip("/"))
    return ""


@property  # type: ignore[misc]
def guide_link(estimator: object) -> str:
    """The guide's URL, which scikit-learn's HTML form reads by ``_doc_link_template``."""
    url, declared = documentation_url(), declaration_of(type(estimator))
    return f"{url}/{declared.guide}.html" if url and declared else ""
