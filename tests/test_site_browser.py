"""The site in Chromium: every page, the live model, search, keyboard, narrow screens.

It skips where the site (`make docs`) or Chromium is missing.
"""

import functools
import gzip
import http.server
import json
import os
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import rankcore as rc

SITE = Path(__file__).parents[1] / "build" / "site"
CHROMIUM = next(
    filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None
)
if not (SITE / "index.html").exists():
    pytest.skip("the site is not built: make docs", allow_module_level=True)
if CHROMIUM is None:
    pytest.skip("Chromium is not installed", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
PAGES = [page for page in PAGES if not page.startswith("_")]
KINDS = ["index.html", "boosting.html", "examples/index.html", "coming_from.html", "install.html"]
KINDS += ["examples/ordered_labels/plot_thresholds.html", "reference/generated/rankcore.PRank.html"]
KINDS += ["reference/command_line.html", "tutorials/stars.html", "search.html"]


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files of the site, compressed as servers of pages do; models of the tests from elsewhere."""

    def log_message(self, *args):
        pass

    def do_GET(self):
        if self.path.startswith("/models/"):
            path = self.server.models / self.path.rpartition("/")[2]
        else:
            path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        if not path.exists():
            self.send_error(404)
            return
        data = path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        if path.suffix in {".html", ".js", ".css", ".svg", ".wasm", ".json"}:
            data = gzip.compress(data, 6)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.server.sent += len(data)
        self.wfile.write(data)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    handler = functools.partial(Handler, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.models, server.sent = tmp_path_factory.mktemp("models"), 0
        server.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as starter:
        # Root, as in a container, has no sandbox of its own.
        browser = starter.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def watch_requests(page, server):
    """Note requests that fail, but for files of the site that leaving a page cuts off."""

    def failed(request):
        path = SITE / request.url.removeprefix(f"{server.url}/").partition("?")[0]
        if not (request.failure == "net::ERR_ABORTED" and path.is_file()):
            page.wrong.append(f"failed: {request.url}: {request.failure}")

    page.on("requestfailed", failed)


@pytest.fixture
def page(browser, server):
    """Open a tab that records its errors; nothing but the site is reachable."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.wrong = []
    page.on("console", lambda said: said.type == "error" and page.wrong.append(said.text))
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    watch_requests(page, server)
    page.on(
        "response", lambda got: got.status >= 400 and page.wrong.append(f"{got.status} {got.url}")
    )

    def outside(route):
        page.wrong.append(f"outside: {route.request.url}")
        route.abort()

    page.route(lambda url: not url.startswith((server.url, "data:", "blob:")), outside)
    yield page
    page.close()


def opened(page, server, name, **options):
    page.goto(f"{server.url}/{name}", wait_until="load", **options)
    return page


def too_wide(page, width):
    """By how many pixels a page scrolls sideways, and what reaches out."""
    page.set_viewport_size({"width": width, "height": 900})
    return page.evaluate(
        """() => {
            const over = document.documentElement.scrollWidth - window.innerWidth;
            if (over <= 0) return null;
            const out = [...document.querySelectorAll("main *")].filter(
                (one) => one.getBoundingClientRect().right > window.innerWidth + 1);
            return [over, out.slice(0, 3).map((one) => one.outerHTML.slice(0, 120))];
        }"""
    )


@pytest.mark.parametrize("part", range(4))
def test_every_page_opens_and_fits(page, server, part):
    assert len(PAGES) > 200
    found = {}
    for name in PAGES[part::4]:
        page.wrong.clear()
        opened(page, server, name)
        wide = {width: out for width in (1440, 768, 360) if (out := too_wide(page, width))}
        if page.wrong or wide:
            found[name] = [*page.wrong, wide]
    assert found == {}


def test_leaving_a_page_is_no_error_but_a_failing_request_is(page, server):
    held = []
    page.route("**/plus.png", lambda route: held.append(route))  # never answered
    fetch = "(name) => { fetch(name).catch(() => null); }"
    opened(page, server, "install.html")
    with page.expect_request("**/plus.png"):
        page.evaluate(fetch, "/_static/plus.png")
    opened(page, server, "citing.html")
    assert page.wrong == []
    page.route("**/broken.svg", lambda route: route.abort())
    page.route("**/aborted.svg", lambda route: route.abort("aborted"))
    for name, reason in [("broken", "net::ERR_FAILED"), ("aborted", "net::ERR_ABORTED")]:
        page.wrong.clear()
        with page.expect_event("requestfailed"):
            page.evaluate(fetch, f"/{name}.svg")
        assert f"failed: {server.url}/{name}.svg: {reason}" in page.wrong


def switcher(page):
    """Return the button that chooses a version, of those for wide and for narrow screens."""
    return page.locator(".version-switcher__button:visible")


@pytest.mark.parametrize("name", ["install.html", "examples/index.html"])
def test_local_build_lists_one_version(page, server, name):
    opened(page, server, name)
    page.wait_for_selector(".version-switcher__button[data-active-version]:visible")
    assert switcher(page).inner_text().strip() == rc.__version__
    switcher(page).click()
    option = page.locator(".version-switcher__menu a:visible")
    assert option.all_inner_texts() == [rc.__version__]
    option.click()
    page.wait_for_url(lambda url: "#" in url)
    assert page.url.partition("#")[0] == f"{server.url}/{name}"
    assert page.wrong == []


def test_the_switcher_leads_to_the_same_page_of_another_version(page, server):
    # A folder stands for the other version; both have an index.
    other = {"name": "0.0.1", "version": "0.0.1", "url": f"{server.url}/examples/"}
    this = {"name": "this", "version": rc.__version__, "url": f"{server.url}/", "preferred": True}
    page.route(f"{server.url}/versions.json", lambda route: route.fulfill(json=[this, other]))
    opened(page, server, "index.html")
    page.wait_for_selector(".version-switcher__button[data-active-version]:visible")
    assert switcher(page).inner_text().strip() == "this"
    switcher(page).click()
    page.locator(".version-switcher__menu a:visible", has_text="0.0.1").click()
    page.wait_for_url(f"{server.url}/examples/index.html")


def test_pages_open_as_files(browser):
    with browser.new_context() as context:
        page = context.new_page()
        wrong = []
        page.on("console", lambda said: said.type == "error" and wrong.append(said.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto((SITE / "install.html").as_uri(), wait_until="load")
        page.wait_for_timeout(200)
        assert page.locator(".version-switcher__button").count() == 0
        assert wrong == []


LEARNERS = [name for name in rc.__all__ if hasattr(getattr(rc, name), "fit")]
LEARNERS += ["PreferenceRanker"]


@pytest.mark.parametrize("name", LEARNERS)
def test_search_finds_each_learner(page, server, name):
    opened(page, server, f"search.html?q={name}")
    link = page.locator(f"#search-results a[href*='.{name}.html']").first
    link.wait_for(timeout=20_000)
    assert page.wrong == []


def frame_of(X):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])


def models():
    """Return a model of each form of the model file, by name, with what it is learned from."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(400, 6)), 2) * (rng.random((400, 6)) < 0.7)
    y = np.digitize(X @ [2, 1, 0.5, 0, -1, 1] + 0.3 * rng.normal(size=400), [-2, 0, 2]) + 1
    qid = np.repeat(np.arange(40), 10)
    scaled = rc.CalibratedOrdinal(rc.PRank(random_state=0), method="isotonic")
    yield "linear", rc.RankSVM().fit(X, y, qid=qid)
    yield "thresholds", rc.PRank(random_state=0).fit(X, y)
    yield "rounded", rc.WidrowHoff(random_state=0).fit(X, y)
    yield "tasks", rc.CuSumRank(random_state=0).fit(X, y)
    yield "classes", rc.MulticlassPerceptron(random_state=0).fit(X, y)
    yield "votes", rc.OAPVoting(9, random_state=0).fit(X, y)
    yield "stumps", rc.RankBoost(30).fit(X, y, qid=qid)
    yield "trees", rc.RankBoost(10, max_leaf_nodes=6).fit(X, y, qid=qid)
    yield "ordinal_trees", rc.OrdinalBoost(5).fit(X, y)
    yield "kernel-rbf", rc.KernelPRank(random_state=0).fit(X, y)
    yield "kernel-poly", rc.KernelPRank(kernel="poly", random_state=0).fit(X, y)
    yield "cumulative", rc.CalibratedOrdinal(rc.PRank(random_state=0)).fit(X, y)
    yield "isotonic", scaled.fit(X, y)


MODELS = ["linear", "thresholds", "rounded", "tasks", "classes", "votes", "stumps", "trees"]
MODELS += ["ordinal_trees", "kernel-rbf", "kernel-poly", "cumulative", "isotonic"]
ASK = """async ([name, rows]) => {
    const { load } = await import("/_static/live/rankcore.js");
    const rankcore = await load("/_static/live/rankcore.wasm");
    const file = await (await fetch(`/models/${name}`)).arrayBuffer();
    const model = rankcore.open(file);
    const out = { learner: model.learner, labels: model.labels };
    const bits = (array) => [...new Uint8Array(array.buffer)];
    const ask = (what, kind) => {
        try { out[what] = bits(kind()); } catch (error) { out[what] = error.message; }
    };
    const dense = { values: Float64Array.from(rows.dense) };
    const single = { values: Float32Array.from(rows.dense) };
    const sparse = { values: rows.values, columns: rows.columns, offsets: rows.offsets };
    for (const [kind, given] of Object.entries({ dense, single, sparse })) {
        ask(`${kind} scores`, () => model.scores(given));
        ask(`${kind} ranks`, () => model.ranks(given));
        ask(`${kind} probabilities`, () => model.probabilities(given));
    }
    model.close();
    return out;
}"""


@pytest.fixture(scope="module")
def made(server):
    found = dict(models())
    assert list(found) == MODELS
    for name, model in found.items():
        rc.save(model, server.models / name)
    return found


def score_of(model, X):
    """Return the score behind ranks or orders, as Python has it."""
    inner = getattr(model, "estimator_", model)
    return inner.project(X) if hasattr(inner, "project") else inner.predict(X)


@pytest.mark.parametrize("name", MODELS)
def test_model_predicts_as_in_python(page, server, made, name):
    model = made[name]
    rng = np.random.default_rng(1)
    X = np.round(rng.normal(size=(1000, 6)), 3) * (rng.random((1000, 6)) < 0.7)
    csr = sp.csr_array(X)
    rows = {"dense": X.ravel(), "values": csr.data, "columns": csr.indices, "offsets": csr.indptr}
    opened(page, server, "install.html")
    said = page.evaluate(ASK, [name, {key: value.tolist() for key, value in rows.items()}])
    assert said["learner"] == type(model).__name__
    for kind, given in [("dense", X), ("single", X.astype(np.float32)), ("sparse", csr)]:
        expected = np.ascontiguousarray(score_of(model, given), dtype=np.float64)
        if expected.ndim == 1 and name not in ("classes", "ordinal_trees"):
            assert bytes(said[f"{kind} scores"]) == expected.tobytes()
        if said["labels"]:
            ranks = np.frombuffer(bytes(said[f"{kind} ranks"]), np.int32)
            labels = np.array(said["labels"], dtype=float)
            assert labels[ranks].tolist() == model.predict(given).tolist()
        if hasattr(model, "predict_proba"):
            table = np.ascontiguousarray(model.predict_proba(given))
            assert bytes(said[f"{kind} probabilities"]) == table.tobytes()
    assert page.wrong == []


def test_a_damaged_file_is_an_error(page, server, made):
    data = bytearray((server.models / "thresholds").read_bytes())
    data[-40] ^= 1
    (server.models / "damaged").write_bytes(data)
    opened(page, server, "install.html")
    with pytest.raises(playwright.Error, match="checksum|damaged"):
        page.evaluate(ASK, ["damaged", {"dense": [], "values": [], "columns": [], "offsets": [0]}])


def test_rows_of_another_width_are_errors(page, server, made):
    opened(page, server, "install.html")
    rows = {"dense": [1.0] * 7, "values": [1.0], "columns": [0], "offsets": [0, 2]}
    said = page.evaluate(ASK, ["thresholds", rows])
    assert "dense rows must have 6 values each" in said["dense scores"]
    assert "offsets must ascend" in said["sparse scores"]
    for column in (2**32, 2**32 + 1, 6, -1, 0.5):
        rows = {"dense": [], "values": [1.0], "columns": [column], "offsets": [0, 1]}
        said = page.evaluate(ASK, ["thresholds", rows])
        assert f"columns must be integers from 0 to 5; got {column}" in said["sparse scores"]
    rows = {"dense": [], "values": [], "columns": [], "offsets": []}
    said = page.evaluate(ASK, ["thresholds", rows])
    assert "offsets must have one number more" in said["sparse scores"]


def test_live_model_predicts_as_in_python(page, server):
    opened(page, server, "index.html")
    page.wait_for_selector(".live-said", timeout=10_000)
    model = rc.load(SITE / "_static" / "live" / "stars.rankcore")
    names = list(model.feature_names_in_)
    for text in ["superb", "boring and awful", "a film", "lovely Lovely plot but slow"]:
        page.fill("#live-text", text)
        counts = [float(text.lower().split().count(name)) for name in names]
        row = frame_of(np.array([counts]))
        row.columns = names
        stars = model.predict(row)[0]
        assert page.inner_text(".live-said") == f"Predicted: {stars} of 5 stars"
        shares = [f"{round(100 * share)}%" for share in model.predict_proba(row)[0]]
        assert page.locator(".live-bar span:last-child").all_inner_texts() == shares
    weights = dict(zip(names, model.estimator_.coef_, strict=True))
    adds = [weights[word] for word in ["lovely", "lovely", "plot", "slow"]]
    assert page.locator(".live-words .live-up").count() == sum(one > 0 for one in adds)
    assert page.locator(".live-words .live-down").count() == sum(one < 0 for one in adds)
    for one in adds:
        assert f"{one:+.1f}" in page.inner_text(".live-words")
    assert page.wrong == []


def test_picture_replaces_the_model_without_javascript(browser, server):
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        opened(page, server, "index.html")
        picture = page.locator(".live-picture")
        assert picture.bounding_box()["width"] > 200
        assert "stars" in picture.get_attribute("alt")


@pytest.mark.parametrize("name", KINDS)
def test_the_keyboard_reaches_everything(page, server, name):
    opened(page, server, name)
    if name == "index.html":
        page.wait_for_selector("#live-text")
    wanted = page.evaluate(
        """() => {
            const kinds = "a[href], button, textarea, input, [tabindex='0']";
            const all = document.querySelectorAll(kinds);
            const seen = [...all].filter((one) => one.checkVisibility({ checkVisibilityCSS: true })
                && one.tabIndex >= 0 && !one.disabled && one.getBoundingClientRect().width > 1
                && one.type !== "radio");
            seen.forEach((one) => one.dataset.wanted = "1");
            return seen.length;
        }"""
    )
    for _ in range(wanted + 20):
        page.keyboard.press("Tab")
        page.evaluate(
            "() => { const one = document.activeElement; if (one) delete one.dataset.wanted; }"
        )
    left = page.eval_on_selector_all(
        "[data-wanted]", "all => all.map((one) => one.outerHTML.slice(0, 150))"
    )
    assert wanted > 10
    assert left == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", KINDS)
def test_axe_finds_no_serious_fault(page, server, name, theme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page.emulate_media(color_scheme=theme)
    opened(page, server, name)
    found = axe.Axe().run(page).response["violations"]
    serious = [
        (one["id"], [node["html"][:150] for node in one["nodes"][:3]])
        for one in found
        if one["impact"] in {"serious", "critical"}
    ]
    assert serious == []


def test_home_page_is_small_and_fast(browser, server):
    server.sent = 0
    with browser.new_context() as context:
        page = context.new_page()
        opened(page, server, "index.html")
        page.wait_for_selector(".live-said")
        timing = page.evaluate("() => performance.getEntriesByType('navigation')[0].toJSON()")
    assert server.sent <= 500_000
    if "CI" not in os.environ:  # where other work runs beside, seconds say little of the page
        assert timing["loadEventEnd"] < 1000, json.dumps(timing)
