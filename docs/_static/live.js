/* The model of the home page: as one types a review, its stars, and what each word adds. */

const here = new URL(".", import.meta.url);
const box = document.getElementById("live-model");

if (box) start(box).catch((error) => console.error(error));

async function start(box) {
    const { load } = await import(new URL("live/rankcore.js", here));
    const [rankcore, file] = await Promise.all([
        load(new URL("live/rankcore.wasm", here)),
        fetch(new URL("live/stars.rankcore", here)).then((answer) => answer.arrayBuffer()),
    ]);
    const model = rankcore.open(file);
    const columns = new Map(model.features.map((word, column) => [word, column]));
    box.querySelector(".live-picture").remove();
    const input = element("textarea", { id: "live-text", rows: 2, spellcheck: false });
    input.value = box.dataset.example;
    const label = element("label", { htmlFor: "live-text", textContent: "Type a review:" });
    const words = element("p", { className: "live-words" });
    const bars = element("div", { className: "live-bars" });
    const said = element("p", { className: "live-said" });
    said.setAttribute("role", "status");
    box.append(label, input, said, bars, words);
    const show = () => answer(model, columns, input.value, { words, bars, said });
    input.addEventListener("input", show);
    show();
    /* For tests, and for the curious. */
    window.rankcoreLive = { rankcore, model, columns };
}

function element(name, properties) {
    return Object.assign(document.createElement(name), properties);
}

/* A sparse row: the counts of the words that the model knows. */
function rowOf(tokens, columns) {
    const counts = new Map();
    for (const token of tokens) {
        const column = columns.get(token.toLowerCase());
        if (column !== undefined) counts.set(column, (counts.get(column) ?? 0) + 1);
    }
    const sorted = [...counts].sort((a, b) => a[0] - b[0]);
    return {
        values: sorted.map(([, count]) => count),
        columns: sorted.map(([column]) => column),
        offsets: [0, sorted.length],
    };
}

function answer(model, columns, text, { words, bars, said }) {
    const tokens = text.match(/[\p{L}']+/gu) ?? [];
    const row = rowOf(tokens, columns);
    const shares = model.probabilities(row);
    const rank = model.ranks(row)[0];
    said.textContent = `Predicted: ${model.labels[rank]} of ${model.nRanks} stars`;
    bars.replaceChildren(
        ...model.labels.map((label, i) => {
            const line = element("div", { className: i === rank ? "live-bar live-best" : "live-bar" });
            const share = `${Math.round(100 * shares[i])}%`;
            const bar = element("span", { className: "live-length" });
            bar.style.width = `${70 * shares[i]}%`;
            const name = element("span", { className: "live-label", textContent: "★".repeat(Number(label)) });
            name.setAttribute("aria-label", `${label} stars`);
            name.setAttribute("role", "img");
            line.append(name, bar, element("span", { textContent: share }));
            return line;
        }),
    );
    /* The contribution of a word is the score with it minus the score without it; exact, as the score is a sum. */
    const score = model.scores(row)[0];
    words.replaceChildren(
        ...tokens.flatMap((token, i) => {
            const without = rowOf(tokens.filter((_, j) => j !== i), columns);
            const adds = score - model.scores(without)[0];
            const shown = element("span", { textContent: token });
            if (columns.has(token.toLowerCase())) {
                shown.className = adds > 0 ? "live-up" : adds < 0 ? "live-down" : "";
                shown.append(element("small", { textContent: ` ${adds > 0 ? "+" : ""}${adds.toFixed(1)}` }));
            }
            return [shown, " "];
        }),
    );
}
