"""A bar in the terminal while a fit runs."""

import io
import sys

import numpy as np
import pytest

import rankcore as rc
from rankcore.progress import bar, watch

X, Y = np.eye(4), [1, 2, 3, 1]


def shown(fit, **options):
    """Output to a terminal while a function runs."""
    rich = pytest.importorskip("rich.console", reason="needs the cli extra")
    console = rich.Console(file=io.StringIO(), width=90, **options)
    with bar(console):
        fit()
    return console.file.getvalue()


def test_a_bar_follows_fits_to_their_end():
    def fit():
        rc.PRank(max_iter=3, shuffle=False).fit(X, Y)
        rc.RankBoost(5).fit(X, Y, qid=np.zeros(len(Y)))

    text = shown(fit, force_terminal=True)
    assert "rank loss" in text
    assert "bound on the training error" in text
    assert "100%" in text


def test_a_bar_follows_fits_on_a_cluster():
    pytest.importorskip("distributed", reason="needs the dask extra")
    from dask import delayed
    from distributed import Client

    import rankcore.dask as rd

    with Client(n_workers=1, processes=False, dashboard_address=":0") as client:
        blocks = [delayed(X)], [delayed(np.array(Y))]
        model = rd.PRank(max_iter=3)
        text = shown(lambda: model.fit(*blocks, client=client), force_terminal=True)
    assert "rank loss" in text
    assert "100%" in text


def test_no_bar_is_shown_without_a_terminal():
    seen = []

    def fit():
        rc.PRank(max_iter=2).fit(X, Y)

    with watch(seen.append):  # whoever watched before goes on
        assert shown(fit, force_terminal=False) == ""
    assert len(seen) == 2


def test_bar_without_rich_names_the_package_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'rankcore\[cli\]'"), bar():
        pass


def test_an_executed_notebook_has_the_bar():
    nbformat = pytest.importorskip("nbformat", reason="needs nbclient and ipykernel")
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient and ipykernel")
    pytest.importorskip("ipykernel", reason="needs nbclient and ipykernel")
    pytest.importorskip("rich", reason="needs the cli extra")
    cell = nbformat.v4.new_code_cell(
        "import numpy as np, rankcore as rc\n"
        "with rc.progress.bar():\n"
        "    model = rc.PRank(max_iter=3).fit(np.eye(4), [1, 2, 3, 1])\n"
    )
    notebook = nbformat.v4.new_notebook(cells=[cell])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    outputs = notebook.cells[0].outputs
    assert [one.output_type for one in outputs] == ["display_data"]  # one, updated
    assert "rank loss" in outputs[0].data["text/plain"]
    assert "100%" in outputs[0].data["text/plain"]
    assert "100%" in outputs[0].data["text/html"]
    assert "application/vnd.jupyter.widget-view+json" not in outputs[0].data
