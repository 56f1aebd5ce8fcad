// Judges the lines of an agent by the published schema of the protocol.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import assert from "node:assert/strict";

export const require = createRequire(join(process.env.EDITORS, "package.json"));
const Ajv = require("ajv/dist/2020.js");

/**
 * A judge for one version. `names` has the definitions of `results`, `requests` and `notifications` by method, and of the kinds of
 * updates: the schema accepts an update of any unknown kind, so each is checked by the definition of its own kind.
 */
export function schemaJudge(version, { results, requests, notifications, updates = {} }) {
  const file = join(process.env.EDITORS, `node_modules/@agentclientprotocol/sdk/schema/${version}/schema.json`);
  // The schema marks formats and defaults of its own that don't concern validity.
  const ajv = new Ajv({ strict: false, validateFormats: false });
  ajv.addSchema({ ...JSON.parse(readFileSync(file)), $id: "acp" });
  const definition = (name) => ajv.getSchema(`acp#/$defs/${name}`) ?? assert.fail(`the schema has no ${name}`);
  let checked = 0;

  function check(name, value, line) {
    const isValid = definition(name);
    assert.ok(isValid(value), `${name}: ${JSON.stringify(isValid.errors)}\n${line}`);
    checked += 1;
  }

  /** Every line must be a message of the schema. `sent` has the methods of the editor's requests by id. */
  function checkLine(line, sent) {
    const message = JSON.parse(line);
    assert.equal(message.jsonrpc, "2.0", line);
    if (message.method && "id" in message) check(requests[message.method], message.params, line);
    else if (message.method) check(notifications[message.method], message.params, line);
    else if (message.error) check("Error", message.error, line);
    else check(results[sent.get(message.id)], message.result, line);
    const update = message.params?.update;
    if (version !== "v1" && update) check(updates[update.sessionUpdate] ?? assert.fail(line), update, line);
    if (update?.plan) check("PlanItems", update.plan, line);
    for (const command of (version !== "v1" && update?.availableCommands) || []) check("Command", command, line);
  }

  return { checkLine, checked: () => checked };
}
