// Objects of the Prometheus operator and of the Gateway API, in the files that are named: each has to be as its schema says, and to have no key that
// the schema does not know. Its validators let such keys pass, but they never read them either, which is what shows them.
import { readFileSync } from "node:fs";
import { parseAllDocuments } from "yaml";
import * as gateway from "@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1";
import * as monitoring from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1";

const GROUPS = { "gateway.networking.k8s.io/v1": gateway, "monitoring.coreos.com/v1": monitoring };

/** The same value, with a note of every key that is read. */
function watched(value, path, unread) {
  if (value === null || typeof value !== "object") return value;
  const inner = Array.isArray(value) ? [] : {};
  for (const [key, of] of Object.entries(value)) {
    const at = `${path}.${key}`;
    inner[key] = watched(of, at, unread);
    if (!Array.isArray(value)) unread.add(at);
  }
  return new Proxy(inner, {
    get(target, key) {
      unread.delete(`${path}.${String(key)}`);
      return target[key];
    },
  });
}

function faults(group, object) {
  const Model = group[object.kind];
  if (Model === undefined) return [`there is no ${object.kind}`];
  const unread = new Set();
  const model = new Model({});
  // Its parts, since a model takes over what it is given.
  for (const [key, value] of Object.entries(object)) model[key] = watched(value, key, unread);
  try {
    model.validate();
  } catch (error) {
    return [error.message];
  }
  // Below a key that nobody reads none is read; the first is the one to name.
  const first = [...unread].filter((key) => ![...unread].some((other) => key.startsWith(`${other}.`)));
  return first.map((key) => `${key} is unknown`);
}

let seen = 0;
let wrong = 0;
for (const file of process.argv.slice(2)) {
  for (const document of parseAllDocuments(readFileSync(file, "utf8"))) {
    const object = document.toJS();
    const group = GROUPS[object?.apiVersion];
    if (group === undefined) continue;
    seen += 1;
    for (const fault of faults(group, object)) {
      wrong += 1;
      console.error(`${file}: ${object.kind}/${object.metadata?.name}: ${fault}`);
    }
  }
}
if (seen === 0) {
  console.error("crds: no object was found");
  process.exit(1);
}
if (wrong > 0) process.exit(1);
console.log(`crds: ${seen} objects`);
