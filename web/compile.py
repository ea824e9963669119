"""Compile librankcore.c to WebAssembly, with the compiler that PyPI's ziglang brings.

python web/compile.py FOLDER writes rankcore.wasm and a copy of rankcore.js there.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "rankcore" / "include" / "librankcore.c"
# Contraction would round a*b + c once, where Python rounds twice.
FLAGS = ["-std=c99", "-Os", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror"]
FLAGS += ["-Wl,--strip-all"]


def exported() -> list[str]:
    """Functions of the header, but for the one that opens paths; and where to put rows."""
    found = re.findall(r"\b(rankcore_\w+)\(", SOURCE.with_suffix(".h").read_text(encoding="utf-8"))
    return [*sorted(set(found) - {"rankcore_open"}), "malloc", "free"]


def main(folder: Path) -> None:
    """Compile, unless what is there is newer than its sources."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "web" / "rankcore.js", folder)
    target = folder / "rankcore.wasm"
    newest = max(path.stat().st_mtime for path in [*SOURCE.parent.glob("*.[ch]"), Path(__file__)])
    if target.exists() and target.stat().st_mtime > newest:
        return
    command = [sys.executable, "-m", "ziglang", "cc", "-target", "wasm32-wasi"]
    command += ["-mexec-model=reactor", *FLAGS, *(f"-Wl,--export={name}" for name in exported())]
    subprocess.run([*command, str(SOURCE), "-o", str(target)], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
