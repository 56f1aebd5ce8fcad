// An editor made of the official client for version 2: it drives a session, and every line of the agent is judged by the schema.
// Usage: acp_client_v2.mjs WORK_FOLDER LONGHAUL ARGUMENTS…   with EDITORS, the folder of the packages.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import { join } from "node:path";
import assert from "node:assert/strict";
import { require, schemaJudge } from "./acp_schema.mjs";

const acp = await import(require.resolve("@agentclientprotocol/sdk/experimental/v2"));
const [work, program, ...words] = process.argv.slice(2);
const judge = schemaJudge("v2", {
  results: {
    initialize: "InitializeResponse", "session/new": "NewSessionResponse", "session/resume": "ResumeSessionResponse",
    "session/list": "ListSessionsResponse", "session/prompt": "PromptResponse", "session/close": "CloseSessionResponse",
    "session/set_config_option": "SetSessionConfigOptionResponse",
  },
  requests: { "session/request_permission": "RequestPermissionRequest" },
  notifications: { "session/update": "UpdateSessionNotification", "$/cancel_request": "CancelRequestNotification" },
  updates: {
    user_message_chunk: "ContentChunk", agent_message_chunk: "ContentChunk", agent_thought_chunk: "ContentChunk", state_update: "StateUpdate",
    tool_call_update: "ToolCallUpdate", plan_update: "PlanUpdate", available_commands_update: "AvailableCommandsUpdate",
    config_option_update: "ConfigOptionUpdate", session_info_update: "SessionInfoUpdate", usage_update: "UsageUpdate", notice: "Notice",
    compaction_update: "CompactionUpdate",
  },
});

const updates = [];
const sent = new Map();
const agent = spawn(program, words, { stdio: ["pipe", "pipe", "ignore"], cwd: work });
let rest = "";
const input = new TransformStream({
  transform: (chunk, controller) => {
    const lines = (rest + Buffer.from(chunk).toString()).split("\n");
    rest = lines.pop();
    lines.forEach((line) => judge.checkLine(line, sent));
    controller.enqueue(chunk);
  },
});
const output = new TransformStream({
  transform: (chunk, controller) => {
    Buffer.from(chunk).toString().split("\n").filter(Boolean).map((line) => JSON.parse(line)).forEach((message) => sent.set(message.id, message.method));
    controller.enqueue(chunk);
  },
});
output.readable.pipeTo(Writable.toWeb(agent.stdin)).catch(() => {});
const app = acp.client({ name: "test", version: "1" });
const asked = [];
app.onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
  asked.push(params);
  return { outcome: { outcome: "selected", optionId: params.options.find((option) => option.kind === "allow_once").optionId } };
});
app.onNotification(acp.methods.client.session.update, ({ params }) => { updates.push(params.update); });
const connection = app.connect(acp.ndJsonStream(output.writable, Readable.toWeb(agent.stdout).pipeThrough(input)));
const request = (method, params) => connection.agent.request(method, params);
const { agent: methods } = acp.methods;
const until = async (what, isSo) => {
  for (let left = 3000; !(await isSo()); left -= 1) {
    assert.ok(left > 0, `${what}: ${JSON.stringify(updates)}`);
    await new Promise((done) => setTimeout(done, 20));
  }
};
const texts = (kind) => updates.filter((update) => update.sessionUpdate === kind).map((update) => update.content.text).join("");
const states = () => updates.filter((update) => update.sessionUpdate === "state_update");

const initialized = await request(methods.initialize, { protocolVersion: 2, info: { name: "test", version: "1" }, capabilities: {} });
assert.equal(initialized.protocolVersion, 2);

// A prompt with a permission and a diff.
const { sessionId } = await request(methods.session.new, { cwd: work, mcpServers: [] });
const accepted = await request(methods.session.prompt, { sessionId, prompt: [{ type: "text", text: "write" }] });
await until("the turn ends", () => states().at(-1)?.state === "idle");
assert.equal(states().at(-1).stopReason, "end_turn");
assert.deepEqual(states().map((update) => update.state), ["running", "requires_action", "running", "idle"]);
assert.equal(updates.find((update) => update.sessionUpdate === "user_message_chunk").messageId, accepted.messageId);
assert.equal(texts("agent_message_chunk"), "I write it.Written.");
assert.equal(asked.length, 1);
assert.equal(readFileSync(join(work, "ran.txt"), "utf8"), "ran\n");
const diffs = updates.flatMap((update) => update.content?.filter?.((content) => content.type === "diff") ?? []);
assert.deepEqual(diffs.map((diff) => diff.changes), [[{ operation: "add", path: join(work, "a.txt") }]]);

// A mode, a list, the past, and the end.
const { configOptions } = await request(methods.session.setConfigOption, { sessionId, configId: "mode", type: "id", value: "auto-edit" });
assert.equal(configOptions[0].currentValue, "auto-edit");
const listed = await request(methods.session.list, { cwd: work });
assert.deepEqual(listed.sessions.map((session) => session.sessionId), [sessionId]);
updates.length = 0;
await request(methods.session.resume, { sessionId, cwd: work, replayFrom: { type: "start" } });
// The client hands out updates beside the answers.
await until("the past is shown", () => texts("agent_message_chunk") === "I write it.Written.");
assert.equal(texts("user_message_chunk"), "write");
await request(methods.session.close, { sessionId });
agent.kill("SIGKILL");
console.log(`all of it works; ${judge.checked()} messages are valid`);
process.exit(0);
