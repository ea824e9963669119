"""Metadata of the site for other programs: OpenGraph, llms.txt and versions.json."""

import json
from html import escape
from pathlib import Path

from docutils import nodes

SUMMARY = "Learning to rank: exact, online, sparse-native, with a typed Cython core"


def first_words(doctree) -> str:
    """Return the first paragraph of a page, as one line."""
    if doctree is None:
        return ""
    for paragraph in doctree.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if text:
            return text[:200]
    return ""


def describe(app, pagename, templatename, context, doctree):
    words = escape(first_words(doctree) or SUMMARY, quote=True)
    base = app.config.html_baseurl
    title = escape(str(context.get("title") or "rankcore"), quote=True)
    context["metatags"] = context.get("metatags", "") + "\n".join(
        [
            f'<meta name="description" content="{words}">',
            f'<meta property="og:title" content="{title}">',
            f'<meta property="og:description" content="{words}">',
            '<meta property="og:type" content="website">',
            '<meta property="og:site_name" content="rankcore">',
            f'<meta property="og:url" content="{base}{pagename}.html">',
            f'<meta property="og:image" content="{base}_static/live/card.png">',
            '<meta name="twitter:card" content="summary_large_image">',
        ]
    )


def list_pages(app, exception):
    """Write llms.txt: what the project is, and a link to each page."""
    if exception or app.builder.name != "html":
        return
    env, base = app.env, app.config.html_baseurl
    groups = {"Guides": [], "Tutorials": [], "Reference": [], "Examples": [], "Other": []}
    of = {"tutorials": "Tutorials", "reference": "Reference", "examples": "Examples"}
    for name in sorted(env.found_docs):
        folder, _, _ = name.partition("/")
        group = of.get(folder, "Guides" if "/" not in name else "Other")
        title = env.titles[name].astext() if name in env.titles else name
        groups[group].append(f"- [{title}]({base}{name}.html)")
    lines = ["# rankcore", "", f"> {SUMMARY}", ""]
    for group, pages in groups.items():
        if pages:
            lines += [f"## {group}", "", *pages, ""]
    (Path(app.outdir) / "llms.txt").write_text("\n".join(lines), encoding="utf-8")


def list_versions(app, exception):
    """Write versions.json: this build alone. Its entry leads to the page on which one is."""
    if exception or app.builder.name != "html":
        return
    versions = [{"name": app.config.version, "version": app.config.version, "url": "#"}]
    (Path(app.outdir) / "versions.json").write_text(json.dumps(versions), encoding="utf-8")


def setup(app):
    app.connect("html-page-context", describe)
    app.connect("build-finished", list_pages)
    app.connect("build-finished", list_versions)
    return {"parallel_read_safe": True}
