"""The README's Python runs, and prints what it says."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_code_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    expected = re.findall(r"^print.*# (.*)$", "".join(blocks), re.MULTILINE)
    names = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    assert len(expected) == 2
    assert printed[:2] == expected
    assert printed[3].startswith("ndcg@10")
