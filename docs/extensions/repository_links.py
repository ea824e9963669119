"""Links that leave docs/ lead to a page of the site if there is one, else to the repository."""

import os.path
import re
from pathlib import Path

from written_pages import PAGES

ROOT = Path(__file__).resolve().parents[2]
# Images stay where they are: Sphinx copies them.
# Lists of pages, which are plain Markdown elsewhere.
LISTS = {"README", "coming_from"}
LINK = re.compile(r"(?<!!)(\[[^\]]*\]\()([^)#:\s]+)(#[^)\s]*)?(?=\))")


def leading(link: str, folder: Path, page_folder: Path, repository: str) -> str:
    """Return where a link leads, of a file in `folder` that is a page in `page_folder`."""
    path = Path(os.path.normpath(folder / link))
    if not path.is_relative_to(ROOT) or not path.exists():
        return link
    inside = path.relative_to(ROOT).as_posix()
    if inside in PAGES:
        target = ROOT / "docs" / f"{PAGES[inside]}.md"
    elif inside.startswith("docs/") and path.suffix == ".md":
        target = path
    elif inside == "README.md":
        target = ROOT / "docs" / "index.md"
    else:
        return f"{repository}/blob/main/{inside}"
    return Path(os.path.relpath(target, page_folder)).as_posix()


def rewritten(text: str, folder: Path, page_folder: Path, repository: str) -> str:
    """Return the text of a page with links that work on the site."""

    def instead(match: re.Match) -> str:
        before, link, anchor = match.groups()
        return before + leading(link, folder, page_folder, repository) + (anchor or "")

    return LINK.sub(instead, text)


def toctrees(text: str, but: tuple[str, ...]) -> str:
    """Put the pages of a list into the navigation, in its order, with its headings as captions."""
    lines = []
    for group in re.split(r"^## ", text, flags=re.MULTILINE):
        links = [link for _, link, _ in LINK.findall(group) if link.endswith(".md")]
        pages = [link.removesuffix(".md") for link in dict.fromkeys(links) if ".." not in link]
        inner = [page for page in pages if page not in but]
        if inner:
            heading = group.partition("\n")[0]
            caption = [] if heading.startswith("#") else [f":caption: {heading}"]
            lines += ["", "```{toctree}", ":hidden:", *caption, "", *inner, "```", ""]
    return "\n".join(lines)


def read(app, docname, source):
    path = Path(app.env.doc2path(docname))
    if path.suffix == ".md":
        written = {page: file for file, page in PAGES.items()}
        folder = (ROOT / written[docname]).parent if docname in written else path.parent
        repository = app.config.html_theme_options["external_links"][0]["url"]
        if docname in LISTS:
            source[0] += toctrees(source[0], but=("which_learner", "coming_from"))
        source[0] = rewritten(source[0], folder, path.parent, repository)


def setup(app):
    app.connect("source-read", read)
    return {"parallel_read_safe": True}
