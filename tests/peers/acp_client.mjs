// An editor made of the official client: it drives a whole session and keeps every line that the agent sends.
// Usage: acp_client.mjs WORK_FOLDER LONGHAUL ARGUMENTS…   with EDITORS, the folder of the packages.
import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import { join } from "node:path";
import assert from "node:assert/strict";
import { names } from "./acp_names.mjs";
import { require, schemaJudge } from "./acp_schema.mjs";

const acp = await import(require.resolve("@agentclientprotocol/sdk"));
const [work, program, ...words] = process.argv.slice(2);

const judge = schemaJudge("v1", names);

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
    app.onRequest(acp.methods.client.elicitation.create, ({ params }) => form(params));
    app.onNotification(acp.methods.client.session.update, ({ params }) => { this.updates.push(params.update); });
    this.connection = app.connect(stream);
  }

  request(method, params) { return this.connection.agent.request(method, params); }
  texts(kind) { return this.updates.filter((update) => update.sessionUpdate === kind).map((update) => update.content.text).join(""); }
  kill() { this.process.kill("SIGKILL"); return new Promise((done) => this.process.on("exit", done)); }
}

const forms = [];
const form = (params) => { forms.push(params); return { action: "accept", content: { answer: "Ada" } }; };
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
    clientCapabilities: { session: { notices: {}, compaction: {} }, elicitation: { form: {} } },
  });
  assert.equal(initialized.protocolVersion, 1);
  return agent;
};

// An editor that is killed: it loads a session, sends a prompt and waits.
if (process.env.DOOMED) {
  const doomed = await start();
  await doomed.request(methods.session.load, { sessionId: process.env.DOOMED, cwd: work, mcpServers: [] });
  await doomed.request(methods.session.prompt, { sessionId: process.env.DOOMED, prompt: [{ type: "text", text: "outlive" }] });
  process.exit(1);
}

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

// A form, an image.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==";
const image = { type: "image", mimeType: "image/png", data: pixel };
await second.request(methods.session.prompt, { sessionId, prompt: [...prompt("who is it?").prompt, image] });
assert.equal(forms.length, 1);
assert.ok(second.texts("agent_message_chunk").endsWith("Hello Ada."));

// SIGKILL of the editor in the middle of a turn, which goes on; load shows its end.
await second.kill();
const editor = spawn(process.execPath, process.argv.slice(1), { env: { ...process.env, DOOMED: sessionId }, stdio: "ignore" });
await until("the command of the doomed editor runs", () => existsSync(join(work, "outliving")));
editor.kill("SIGKILL");
await new Promise((done) => editor.on("exit", done));
writeFileSync(join(work, "outlive"), "");
const third = await start();
const shown = () => third.texts("agent_message_chunk");
await third.request(methods.session.load, { sessionId, cwd: work, mcpServers: [] });
await until("the turn goes on without its editor", () => shown().endsWith("It outlived the editor."));
const images = third.updates.filter((update) => update.sessionUpdate === "user_message_chunk" && update.content.type === "image");
assert.deepEqual(images.map((update) => update.content.data), [pixel]);
await third.request(methods.session.close, { sessionId });
const before = third.updates.filter((update) => update.sessionUpdate === "user_message_chunk").length;
await third.request(methods.session.resume, { sessionId, cwd: work, mcpServers: [] });
assert.equal(third.updates.filter((update) => update.sessionUpdate === "user_message_chunk").length, before);
await third.kill();
console.log(`all of it works; ${judge.checked()} messages are valid`);
