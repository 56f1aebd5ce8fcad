// Judges the lines that acp_tee.mjs has kept by the published schema, and prints the methods that the editor has called.
// Usage: acp_judge.mjs LINES   with EDITORS, the folder of the packages.
import { readFileSync } from "node:fs";
import { schemaJudge } from "./acp_schema.mjs";
import { names } from "./acp_names.mjs";

const judge = schemaJudge("v1", names);
const sent = new Map();
const called = new Set();
for (const line of readFileSync(process.argv[2], "utf8").split("\n").filter(Boolean)) {
  const [, mark, connection, text] = /^([<>]) (\d+) (.*)$/.exec(line);
  if (!sent.has(connection)) sent.set(connection, new Map());
  if (mark === "<") judge.checkLine(text, sent.get(connection));
  else {
    const { id, method } = JSON.parse(text);
    if (method) sent.get(connection).set(id, method);
    if (method) called.add(method);
  }
}
console.log(`${judge.checked()} messages are valid; called: ${[...called].join(" ")}`);
