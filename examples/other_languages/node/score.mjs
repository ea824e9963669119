// Score rows with rankcore.wasm from Node.
//
//     node score.mjs FOLDER_OF_RANKCORE_JS MODEL < rows.svm

import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, path] = process.argv.slice(2);

function read(text) {
    const rows = { values: [], columns: [], offsets: [0] };
    for (const line of text.split("\n")) {
        const items = line.split("#")[0].split(/\s+/).filter(Boolean);
        if (!items.length) continue;
        for (const item of items.slice(1)) { // the first is the label
            const [column, value] = item.split(":");
            if (column === "qid") continue;
            rows.columns.push(Number(column) - 1);
            rows.values.push(Number(value));
        }
        rows.offsets.push(rows.values.length);
    }
    return rows;
}

function probabilities(model, rows) {
    try {
        return model.probabilities(rows);
    } catch (error) {
        if (error.message.includes("no probabilities")) return null; // the model has none
        throw error;
    }
}

async function main() {
    if (!path) throw new Error("usage: node score.mjs FOLDER_OF_RANKCORE_JS MODEL < rows.svm");
    const { load } = await import(pathToFileURL(join(resolve(folder), "rankcore.js")));
    const rankcore = await load(readFileSync(join(folder, "rankcore.wasm")));
    const model = rankcore.open(readFileSync(path));
    const rows = read(readFileSync(0, "utf8"));
    const scores = model.scores(rows), k = model.nRanks;
    const ranks = k ? model.ranks(rows) : null;
    const table = k ? probabilities(model, rows) : null;
    scores.forEach((score, i) => {
        const row = table ? Array.from(table.slice(i * k, (i + 1) * k)) : [];
        console.log([score, ranks ? model.labels[ranks[i]] : "-", ...row].join(" "));
    });
    model.close();
}

main().catch((error) => {
    console.error(`${path}: ${error.message}`);
    process.exit(1);
});
