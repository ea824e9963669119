"""Parts of the C headers, copied into self-contained sources."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

import rankcore

HEADERS = (
    "rankcore.h",
    "rankcore_calibration.h",
    "rankcore_ordinal.h",
    "rankcore_forms.h",
    "rankcore_model.h",
)
# A piece includes the comment before it.
_COMMENT = r"(?:^/\*(?:[^*]|\*(?!/))*\*/\n)?"
_INLINE = "(?:static inline|RC_WITH_CONSTANTS_)"
_PIECES = re.compile(
    rf"(?P<function>{_COMMENT}^{_INLINE} [^;{{]*?\b(?P<name>rc_\w+)\([^;{{]*\)\n\{{\n.*?^\}}\n)"
    rf"|(?P<struct>{_COMMENT}^typedef struct \w+ \{{\n.*?^\}} (?P<type>\w+);\n)"
    rf"|(?P<enum>{_COMMENT}^enum \{{.*?\}};\n)"
    r"|(?P<switch>^#if defined\(__GNUC__\)[^\n]*\n(?:#define[^\n]*\n|#else\n)+#endif\n)"
    r"|(?P<macro>^#define RC_\w+(?:[^\n]*\\\n)*[^\n]*\n)",
    re.MULTILINE | re.DOTALL,
)
# A field of a struct, alone on its line.
_FIELD = re.compile(r"    [\w ]+[ *](\w+)(?:\[\d+\]|, \w+)?;")
_WORD = re.compile(r"\bRC_\w+|\brc_\w+")


def _pieces() -> list[tuple[frozenset[str], str]]:
    """Names defined by each piece, and its text, in the order of the headers."""
    found = []
    for header in HEADERS:
        text = (Path(rankcore.get_include()) / header).read_text(encoding="utf-8")
        for match in _PIECES.finditer(text):
            piece = match.group()
            if match["function"] or match["struct"]:
                defines = {match["name"] or match["type"]}
            elif match["enum"]:
                defines = {*_WORD.findall(piece[piece.index("enum {") :])}
            else:
                defines = {*re.findall(r"#define (\w+)", piece)}
            found.append((frozenset(defines), piece))
    return found


def parts(code: str, fields: Collection[str]) -> str:
    """Functions and structs of the headers that C code needs, in the order of dependencies.

    The struct ``rc_model`` has only some of its fields. KeyError if a name is in no header.
    """
    pieces = _pieces()
    known = {name: at for at, (defines, _) in enumerate(pieces) for name in defines}
    for name in sorted(_words(code) - known.keys()):
        raise KeyError(f"no piece {name} in {', '.join(HEADERS)}")
    texts = [piece for _, piece in pieces]
    texts[known["rc_model"]] = "".join(
        line
        for line in texts[known["rc_model"]].splitlines(keepends=True)
        if (found := _FIELD.match(line)) is None or found[1] in fields
    )
    needed: set[int] = set()
    left = [code]
    while left:
        for name in _words(left.pop()):
            if name in known and known[name] not in needed:
                needed.add(known[name])
                left.append(texts[known[name]])
    return "\n".join(texts[at] for at in sorted(needed))


def _words(text: str) -> set[str]:
    """Identifiers of rankcore in a piece, without comments."""
    return {*_WORD.findall(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))}
