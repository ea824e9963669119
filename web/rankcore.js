/* rankcore.js - model files of rankcore, scored in a browser or another JavaScript engine.
 *
 *     import { load } from "./rankcore.js";
 *     const rankcore = await load("rankcore.wasm");
 *     const model = rankcore.open(await (await fetch("stars.rankcore")).arrayBuffer());
 *     model.scores({ values: [0.5, 2, 1] });
 *
 * Rows are { values }, dense, one row after the other, or { values, columns, offsets }, CSR: row i has
 * the values offsets[i] .. offsets[i + 1] - 1, at ascending columns. Values are a Float64Array, a
 * Float32Array or an array of numbers. Results are those of Python, to the bit. Errors are thrown.
 */

const ROOM = 1024; /* bytes for messages and names */

/* Compiles the scorer; source is a URL, a Response or the bytes of rankcore.wasm. */
export async function load(source) {
    let bytes = source;
    if (typeof source === "string" || source instanceof URL) bytes = await fetch(source);
    if (typeof Response !== "undefined" && bytes instanceof Response) {
        if (!bytes.ok) throw new Error(`rankcore.wasm: ${bytes.status} ${bytes.statusText}`);
        bytes = await bytes.arrayBuffer();
    }
    const module = await WebAssembly.compile(bytes);
    /* The scorer reads no files and prints nothing: "no such file" answers every call of the system. */
    const imports = {};
    for (const { module: from, name } of WebAssembly.Module.imports(module)) {
        imports[from] = imports[from] ?? {};
        imports[from][name] = () => 8;
    }
    const instance = await WebAssembly.instantiate(module, imports);
    instance.exports._initialize?.();
    return new Rankcore(instance.exports);
}

class Rankcore {
    constructor(exports) {
        this.c = exports;
    }

    /* Opens the bytes of a file that rankcore.save wrote: an ArrayBuffer or a typed array. */
    open(file) {
        const bytes = ArrayBuffer.isView(file)
            ? new Uint8Array(file.buffer, file.byteOffset, file.byteLength)
            : new Uint8Array(file);
        const room = new Room(this.c);
        const at = room.copy(bytes);
        const model = room.within(() => {
            const error = room.take(ROOM);
            const found = this.c.rankcore_open_bytes(at, bytes.length, error, ROOM);
            if (!found) throw new Error(this.text(error));
            room.give(error);
            return found;
        });
        return new Model(this, model, room);
    }

    text(at) {
        const bytes = new Uint8Array(this.c.memory.buffer, at);
        return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
    }
}

/* Memory of the scorer, given back together. */
class Room {
    constructor(c) {
        this.c = c;
        this.taken = [];
    }

    take(n) {
        const at = this.c.malloc(Math.max(n, 8));
        if (!at) {
            this.close();
            throw new Error("no memory");
        }
        this.taken.push(at);
        return at;
    }

    give(at) {
        this.taken.splice(this.taken.indexOf(at), 1);
        this.c.free(at);
    }

    copy(array) {
        const at = this.take(array.byteLength);
        const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
        new Uint8Array(this.c.memory.buffer).set(bytes, at);
        return at;
    }

    within(work) {
        try {
            return work();
        } catch (error) {
            this.close();
            throw error;
        }
    }

    close() {
        for (const at of this.taken.splice(0)) this.c.free(at);
    }
}

class Model {
    #owner;
    #model;
    #room;

    constructor(owner, model, room) {
        this.#owner = owner;
        this.#model = model;
        this.#room = room;
        const c = owner.c;
        this.nFeatures = Number(c.rankcore_n_features(model));
        this.nRanks = c.rankcore_n_ranks(model);
        this.learner = this.#name((to) => c.rankcore_learner(model, to, ROOM));
        this.labels = Array.from({ length: this.nRanks }, (_, rank) =>
            this.#name((to) => c.rankcore_label(model, rank, to, ROOM)),
        );
    }

    /* Names of the features, or null if the model has none. */
    get features() {
        const c = this.#owner.c;
        const name = (column) =>
            this.#name((to) => c.rankcore_feature(this.#model, BigInt(column), to, ROOM));
        if (!this.nFeatures || name(0) === null) return null;
        return Array.from({ length: this.nFeatures }, (_, column) => name(column));
    }

    /* The score of each row, a Float64Array. */
    scores(rows) {
        return this.#answer(rows, "", Float64Array, 1, (at) => [at, 0]);
    }

    /* The rank of each row, from 0, an Int32Array; labels[rank] is its label. */
    ranks(rows) {
        if (!this.nRanks) throw new Error("this model has scores, and no ranks");
        return this.#answer(rows, "", Int32Array, 1, (at) => [0, at]);
    }

    /* The probability of each rank, nRanks for each row, of a calibrated model or OrdinalBoost. */
    probabilities(rows) {
        return this.#answer(rows, "_probabilities", Float64Array, this.nRanks, (at) => [at]);
    }

    /* Gives the memory of the model back; it cannot be used afterwards. */
    close() {
        if (this.#model) this.#owner.c.rankcore_close(this.#model);
        this.#model = 0;
        this.#room.close();
    }

    #name(write) {
        const room = new Room(this.#owner.c);
        const at = room.take(ROOM);
        const length = room.within(() => write(at));
        const found = length < 0 ? null : this.#owner.text(at);
        room.close();
        return found;
    }

    #answer(rows, kind, Result, perRow, outputs) {
        if (!this.#model) throw new Error("the model is closed");
        const c = this.#owner.c;
        const single = rows.values instanceof Float32Array;
        const values = single ? rows.values : Float64Array.from(rows.values);
        const sparse = rows.columns !== undefined;
        if (!sparse && this.nFeatures && values.length % this.nFeatures)
            throw new Error(
                `dense rows must have ${this.nFeatures} values each; got ${values.length} in all`,
            );
        const n = sparse ? rows.offsets.length - 1 : values.length / (this.nFeatures || 1);
        if (sparse) checkSparse(rows, values, this.nFeatures);
        const room = new Room(c);
        const found = room.within(() => {
            const inputs = [room.copy(values)];
            if (sparse) {
                inputs.push(room.copy(Int32Array.from(rows.columns)));
                inputs.push(room.copy(BigInt64Array.from(rows.offsets, BigInt)), BigInt(n));
            } else {
                inputs.push(BigInt(n), BigInt(this.nFeatures));
            }
            const size = n * perRow * Result.BYTES_PER_ELEMENT;
            const at = room.take(size);
            const name = `rankcore_${sparse ? "csr" : "dense"}${single ? "_f32" : ""}${kind}`;
            const code = c[name](this.#model, ...inputs, ...outputs(at));
            if (code) throw new Error(this.#owner.text(c.rankcore_message(code)));
            return new Result(c.memory.buffer.slice(at, at + size));
        });
        room.close();
        return found;
    }
}

/* Offsets outside of the values would read what is not theirs; Int32Array.from wraps columns at 2^32. */
function checkSparse({ columns, offsets }, values, nFeatures) {
    if (columns.length !== values.length)
        throw new Error(`values and columns must have one length; got ${values.length} and ${columns.length}`);
    if (!offsets.length) throw new Error("offsets must have one number more than there are rows; got none");
    for (let i = 0; i + 1 < offsets.length; i++)
        if (!(offsets[i] >= 0 && offsets[i] <= offsets[i + 1] && offsets[i + 1] <= values.length))
            throw new Error(`offsets must ascend from 0 to ${values.length}; got ${offsets[i]}, ${offsets[i + 1]}`);
    const end = nFeatures || 2 ** 31;
    for (const column of columns)
        if (!(Number.isInteger(column) && column >= 0 && column < end))
            throw new Error(`columns must be integers from 0 to ${end - 1}; got ${column}`);
}
