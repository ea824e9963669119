"""Pages written from files elsewhere in the repository, and from the command's own help."""

import os.path
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# File of the repository: page of the site.
PAGES = {
    **{
        f"reproduce/{path.name}": f"reproductions/{path.stem}"
        for path in sorted((ROOT / "reproduce").glob("*.md"))
    },
    "CHANGELOG.md": "project/changelog",
    "CONTRIBUTING.md": "project/contributing",
}
IMAGE = re.compile(r"(!\[[^\]]*\]\()([^):\s]+)(?=\))")


def replace(path: Path, text: str) -> None:
    """Write a file, unless it is so already: Sphinx reads pages again by their dates."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def page_of(file: str, page: str) -> str:
    """Text of a file; its images are found from the page, its links later."""
    source = ROOT / file
    folder = (ROOT / "docs" / page).parent

    def image(match: re.Match) -> str:
        target = os.path.relpath(source.parent / match[2], folder)
        return match[1] + Path(target).as_posix()

    return IMAGE.sub(image, source.read_text(encoding="utf-8"))


def command_line() -> str:
    """Write the reference of the command from the help of its options."""
    import click
    from typer.main import get_command

    from rankcore.cli.app import app

    group = get_command(app)
    context = click.Context(group, info_name="rankcore")
    parts = [
        "# The command line",
        "Every command with its arguments and options, from its own help. The guide "
        "[to the command line](../command_line.md) shows an experiment in five of them.",
    ]
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        below = click.Context(command, info_name=f"rankcore {name}", parent=None)
        parts += [f"## {name}", plain(command.help or "")]
        usage = " ".join(command.collect_usage_pieces(below))
        parts.append(f"```text\nrankcore {name} {usage}\n```")
        rows = [row for param in command.get_params(below) if (row := described(param, below))]
        if rows:
            parts.append("\n".join(["| | |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def described(param, context) -> str:
    """Row of a table: an argument or option, and its help."""
    record = param.get_help_record(context)
    if record is None:
        help_text = getattr(param, "help", None) or ""
        record = (param.human_readable_name, help_text)
    names, text = (part.replace("\n", " ").replace("|", r"\|") for part in record)
    return f"| `{names}` | {plain(text)} |"


def plain(text: str) -> str:
    """Text without the markup of terminals; brackets and stars stand for themselves."""
    text = re.sub(r"\[/?(bold|dim|italic|red|yellow|green|cyan)[^\]]*\]", "", text)
    text = text.replace("\b", "").replace("\f", "")
    return re.sub(r"([<>*_])", r"\\\1", text).strip()


def write(app):
    docs = Path(app.srcdir)
    for file, page in PAGES.items():
        replace(docs / f"{page}.md", page_of(file, page))
    replace(docs / "reference" / "command_line.md", command_line())


def setup(app):
    app.connect("builder-inited", write, priority=1)
    return {"parallel_read_safe": True}
