// Says in words whether the run is well: failures, waiting requests, models that are not loaded, and a lost connection.

import { clock, milliseconds, zone } from "./dom.js";
import { targetsOf, titleOf } from "./overview.js";

const MOST_NAMES = 4;
const MINUTE_MS = 60_000;
const RECENT_MS = MINUTE_MS;
const LONG_WAIT_MS = 100;

/** The mean time in the queue and in compute of the requests of the last minute, by model. */
export class Waits {
  constructor() {
    this.seen = new Map(); // counters with their times, oldest first
  }

  add(state, now) {
    for (const server of state.endpoints.flatMap((each) => each.servers)) {
      for (const model of server.models) {
        const key = JSON.stringify([server.process_id ?? server.container, model.name, model.version]);
        const known = (this.seen.get(key) ?? []).filter((each) => now - each.at <= RECENT_MS);
        this.seen.set(key, [...known, { at: now, ...model }]);
      }
    }
    for (const [key, known] of this.seen) if (now - known.at(-1).at > RECENT_MS) this.seen.delete(key);
  }

  /** Return {name, queue, compute} of the model whose requests wait longest, if they wait longer than they run. */
  longest() {
    const means = [...this.seen.values()].map((known) => {
      const [first, last] = [known[0], known.at(-1)];
      const requests = last.requests - first.requests;
      const mean = (name) => (last[name] - first[name]) / (requests || 1);
      return { name: last.name, queue: requests > 0 ? mean("queue_ms") : 0, compute: mean("compute_ms") };
    });
    const found = means.reduce((one, other) => (other.queue > one.queue ? other : one), { queue: 0 });
    return found.queue > LONG_WAIT_MS && found.queue > 2 * found.compute ? found : null;
  }
}

function listed(names) {
  return names.length > MOST_NAMES ? `${names.slice(0, MOST_NAMES).join(", ")} and ${names.length - MOST_NAMES} more` : names.join(", ");
}

/** Return {text, isBad}: how many calls failed in the last minute and of which models, and where requests wait. */
export function healthOf(state, wait) {
  const sum = (name) => state.endpoints.reduce((all, each) => all + each[name], 0);
  const [calls, failures, refused] = [sum("recent_calls"), sum("recent_failures"), sum("recent_errors") - sum("recent_failures")];
  const targets = targetsOf(state);
  const titles = (isMeant) => listed(targets.filter(isMeant).map(({ server, target }) => titleOf(server, target)));
  const names = titles(({ target }) => target.recent_failures || target.state === "failed");
  const starting = titles(({ target }) => target.state === "starting");
  const waits = wait ? `Requests wait ${milliseconds(wait.queue)} for ${wait.name}, which computes for ${milliseconds(wait.compute)}: it is overloaded` : "";
  const count = `${failures} of ${calls} calls failed in the last minute${names ? `: ${names}` : ""}`;
  const isAllRefused = calls > 0 && refused === calls; // then nothing is known of the models
  const without = names ? `The last call failed of ${names}` : calls && !waits && !isAllRefused ? `No model failed in ${calls} calls of the last minute` : "";
  const wrong = isAllRefused ? `${calls === 1 ? "The only call of the last minute was refused as a wrong request" : `All ${calls} calls of the last minute were refused as wrong requests`}, the message is below` : refused ? `${refused} wrong request${refused === 1 ? " was" : "s were"} refused` : "";
  const start = starting ? `Not ready yet: ${starting}` : "";
  const unloaded = targets.filter(({ target }) => target.state === "not loaded").length;
  const isBad = Boolean(failures || names || waits || isAllRefused);
  const load = unloaded && !isBad ? `${unloaded} model${unloaded === 1 ? " is" : "s are"} not loaded yet, until the first call` : "";
  return { text: [waits, failures ? count : without, start, load, wrong].filter(Boolean).join("; "), isBad };
}

/** Return what a lost connection means; `heardAt` is when the run was last heard, in milliseconds. */
export function lostConnection(heardAt, now = Date.now()) {
  const seconds = heardAt / 1000;
  const minutes = Math.floor((now - heardAt) / MINUTE_MS); // whole ones: a screen reader says each new text
  const age = minutes ? `${minutes} minute${minutes === 1 ? "" : "s"} ago` : "less than a minute ago";
  return `The run has stopped or does not answer. Everything below is from ${clock(seconds)} ${zone(seconds)}, ${age}.`;
}

const HINTS = {
  starting: "The server is starting. Calls fail until it is ready.",
  loading: "A call has made the server load this model.",
  "not loaded": "Not loaded yet, which is normal: the first call loads it and takes longer.",
  "zero copies": "No copy is running. The first call starts one and takes longer.",
};

/** Return what a state means for the next call; nothing if it needs no words. */
export const hintOf = (state) => HINTS[state] ?? "";
