// An editor made of the official client: it drives a whole session and keeps every line that the agent sends.
// Usage: acp_client.mjs WORK_FOLDER LONGHAUL ARGUMENTS…   with EDITORS, the folder of the packages.
import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import { join } from "node:path";
import assert from "node:assert/strict";
import { require, schemaJudge } from "./acp_schema.mjs";

const acp = await import(require.resolve("@agentclientprotocol/sdk"));
const [work, program, ...words] = process.argv.slice(2);

const judge = schemaJudge("v1", {
  results: {
    initialize: "InitializeResponse", authenticate: "AuthenticateResponse", "session/new": "NewSessionResponse",
    "session/load": "LoadSessionResponse", "session/resume": "ResumeSessionResponse", "session/list": "ListSessionsResponse",
    "session/prompt": "PromptResponse", "session/set_mode": "SetSessionModeResponse", "session/close": "CloseSessionResponse",
    "session/set_config_option": "SetSessionConfigOptionResponse",
  },
  requests: { "session/request_permission": "RequestPermissionRequest" },
  notifications: { "session/update": "SessionNotification", "$/cancel_request": "CancelRequestNotification" },
});

/** An agent, and what the editor knows of it. */
class Agent {
  constructor(answer) {
    this.updates = [];
    this.sent = new Map();
    this.process = spawn(program, words, { stdio: ["pipe", "pipe", "ignore"], cwd: work });
    let rest = "";
    const input = new TransformStream({
      transform: (chunk, controller) => {
        const lines = (rest + Buffer.from(chunk).toString()).split("\n");
        rest = lines.pop();
        lines.forEach((line) => judge.checkLine(line, this.sent));
        controller.enqueue(chunk);
      },
    });
    const output = new TransformStream({
      transform: (chunk, controller) => {
        const lines = Buffer.from(chunk).toString().split("\n").filter(Boolean);
        lines.map((line) => JSON.parse(line)).forEach((message) => this.sent.set(message.id, message.method));
        controller.enqueue(chunk);
      },
    });
    output.readable.pipeTo(Writable.toWeb(this.process.stdin)).catch(() => {});
    const stream = acp.ndJsonStream(output.writable, Readable.toWeb(this.process.stdout).pipeThrough(input));
    const app = acp.client({ name: "test" });
    app.onRequest(acp.methods.client.session.requestPermission, ({ params }) => answer(params));
    app.onNotification(acp.methods.client.session.update, ({ params }) => { this.updates.push(params.update); });
    this.connection = app.connect(stream);
  }

  request(method, params) { return this.connection.agent.request(method, params); }
  texts(kind) { return this.updates.filter((update) => update.sessionUpdate === kind).map((update) => update.content.text).join(""); }
  kill() { this.process.kill("SIGKILL"); return new Promise((done) => this.process.on("exit", done)); }
}

const yes = ({ options }) => ({ outcome: { outcome: "selected", optionId: options.find((option) => option.kind === "allow_once").optionId } });
const { agent: methods } = acp.methods;
const until = async (what, isSo) => {
  for (let left = 3000; !(await isSo()); left -= 1) {
    assert.ok(left > 0, what);
    await new Promise((done) => setTimeout(done, 20));
  }
};
const start = async (answer = yes) => {
  const agent = new Agent(answer);
  const initialized = await agent.request(methods.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: { session: { notices: {}, compaction: {} } },
  });
  assert.equal(initialized.protocolVersion, 1);
  return agent;
};

// A prompt with a permission and a diff.
const asked = [];
const first = await start((params) => { asked.push(params); return yes(params); });
const { sessionId } = await first.request(methods.session.new, { cwd: work, mcpServers: [] });
const prompt = (text) => ({ sessionId, prompt: [{ type: "text", text }] });
assert.deepEqual(await first.request(methods.session.prompt, prompt("write")), { stopReason: "end_turn" });
assert.equal(first.texts("agent_message_chunk"), "I write it.Written.");
assert.equal(asked.length, 1);
assert.equal(readFileSync(join(work, "ran.txt"), "utf8"), "ran\n");
const diffs = first.updates.flatMap((update) => update.content?.filter?.((content) => content.type === "diff") ?? []);
assert.deepEqual(diffs, [{ type: "diff", path: join(work, "a.txt"), oldText: null, newText: "one\n" }]);

// A mode, a model, a list.
await first.request(methods.session.setMode, { sessionId, modeId: "auto" });
const { configOptions } = await first.request(methods.session.setConfigOption, { sessionId, configId: "mode", value: "auto-edit" });
assert.equal(configOptions[0].currentValue, "auto-edit");
const listed = await first.request(methods.session.list, { cwd: work });
assert.deepEqual(listed.sessions.map((session) => session.sessionId), [sessionId]);

// SIGKILL of our side in the middle of a turn; load shows the past, and the turn goes on.
const lost = first.request(methods.session.prompt, prompt("wait"));
lost.catch(() => {});
await until("the command runs", () => existsSync(join(work, "waiting")));
await first.kill();
const second = await start();
await second.request(methods.session.load, { sessionId, cwd: work, mcpServers: [] });
assert.equal(second.texts("user_message_chunk"), "writewait");
assert.ok(second.texts("agent_message_chunk").startsWith("I write it.Written."));
writeFileSync(join(work, "go"), "");
await until("the turn goes on", () => second.texts("agent_message_chunk").endsWith("It went on."));

// Cancel.
const cancelled = second.request(methods.session.prompt, prompt("slow"));
await until("the slow answer comes", () => second.texts("agent_message_chunk").includes("Slowly"));
await second.connection.agent.notify(methods.session.cancel, { sessionId });
assert.deepEqual(await cancelled, { stopReason: "cancelled" });
await second.kill();
console.log(`all of it works; ${judge.checked()} messages are valid`);
