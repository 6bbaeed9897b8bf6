// Asks the search of the built site: node search_site.js WORKER INDEX < queries as JSON. It runs the script that the
// browser runs, and prints the addresses of the first three results of each query.
import fs from "node:fs";
import vm from "node:vm";

const [worker, index] = process.argv.slice(2);
const READY = { type: 0, data: JSON.parse(fs.readFileSync(index, "utf8")) };
let answered;
const self = { postMessage: (message) => answered(message) };
vm.runInNewContext(fs.readFileSync(worker, "utf8"), { self, Intl });

function ask(message) {
  return new Promise((resolve) => {
    answered = resolve;
    self.onmessage({ data: message });
  });
}

async function main() {
  await ask(READY);
  const found = {};
  for (const input of JSON.parse(fs.readFileSync(0, "utf8"))) {
    const { data } = await ask({ type: 2, data: { input, filter: { input: "" } } });
    found[input] = data.items.slice(0, 3).map(({ id }) => READY.data.items[id].location);
  }
  console.log(JSON.stringify(found));
}

main();
