"""The site: `make docs` builds it into build/site."""

import os
import sys
import tomllib
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS / "extensions"))
# Pictures are the same on every machine, without a display.
os.environ.setdefault("MPLBACKEND", "agg")

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
QUICK = bool(os.environ.get("RANKCORE_DOCS_QUICK"))

project = PROJECT["name"]
author = PROJECT["authors"][0]["name"]
copyright = author
version = release = PROJECT["version"]
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "written_pages",
    "repository_links",
    "public_names",
    "live_model",
    "for_machines",
]
root_doc = "index"
exclude_patterns = ["extensions/*", "gallery/*", "**/GALLERY_HEADER*"]
templates_path = ["_templates"]
# Sphinx cannot pickle a function of the gallery's settings, and says so each time.
suppress_warnings = ["config.cache", "myst.header"]
nitpicky = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_block"]
myst_heading_anchors = 4
myst_all_links_external = False

autosummary_generate = True
autosummary_imported_members = False
# Some file systems take plan.html and Plan.html for one.
autosummary_filename_map = {
    "rankcore.preference.Plan": "rankcore.preference.Plan-class",
    "rankcore.clicks.Propensities": "rankcore.clicks.Propensities-class",
    "rankcore.explain.Contributions": "rankcore.explain.Contributions-class",
}
autodoc_typehints = "none"  # the sections of docstrings name the types in words
autodoc_inherit_docstrings = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# No network while the site is built, and none while it is read.
mathjax_path = "mathjax-is-not-used.js"
mathjax_options = {"async": "async"}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"

sphinx_gallery_conf = {
    "examples_dirs": [str(ROOT / "examples" / "gallery")],
    "gallery_dirs": ["examples"],
    "subsection_order": [
        f"../examples/gallery/{group}"
        for group in ("ordered_labels", "documents", "judges", "clicks", "production", "theory")
    ],
    "within_subsection_order": "FileNameSortKey",
    "filename_pattern": r"plot_",
    "abort_on_example_error": True,
    "only_warn_on_example_error": False,
    "download_all_examples": False,
    "show_memory": False,
    "remove_config_comments": True,
    "min_reported_time": 10,
    "image_scrapers": ("matplotlib",),
    "image_srcset": ["2x"],
    "matplotlib_animations": False,
    "default_thumb_file": None,
    "thumbnail_size": (400, 280),
    "reset_modules": ("matplotlib",),
    "write_computation_times": False,
    "show_signature": False,
    "doc_module": ("rankcore",),
    "backreferences_dir": "reference/used",
    # A quick build draws nothing: pictures are those of the last build, if there are any.
    "plot_gallery": not QUICK,
}

html_theme = "pydata_sphinx_theme"
html_title = "rankcore"
html_static_path = ["_static"]
html_css_files = ["rankcore.css"]
html_js_files = ["names.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_baseurl = PROJECT["urls"]["Documentation"].rstrip("/") + "/"
html_favicon = "_static/favicon.svg"
html_theme_options = {
    "logo": {"text": "rankcore"},
    "external_links": [{"name": "Source", "url": PROJECT["urls"]["Source"]}],
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": False,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "navbar_end": ["version-switcher", "theme-switcher"],
    # Beside the first page: for_machines.py writes it, and publishing puts the full list there.
    "switcher": {"json_url": "versions.json", "version_match": version},
    "check_switcher": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "install": [], "ten_minutes": [], "which_learner": []}
