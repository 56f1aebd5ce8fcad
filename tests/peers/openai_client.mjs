// Everything of H4 with the official JavaScript client, unchanged, and a framework on top of its protocol.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(process.env.CLIENTS + "/package.json"));
const load = async (name) => await import(pathToFileURL(require.resolve(name)));
const { default: OpenAI } = await load("openai");
const client = new OpenAI({ baseURL: process.env.BASE_URL, apiKey: process.env.TOKEN });
const first = "One two three.", second = "Four five six.";
const user = (content) => ({ role: "user", content });
const assistant = (content) => ({ role: "assistant", content });
const model = "longhaul";

// Models.
assert.equal((await client.models.list()).data[0].id, model);

// Chat completions.
const whole = await client.chat.completions.create({ model, messages: [user("js chat")] });
assert.equal(whole.choices[0].message.content, first);
const messages = [user("js chat"), assistant(first), user("more")];
const stream = client.chat.completions.stream({ model, messages, stream_options: { include_usage: true } });
const streamed = await stream.finalChatCompletion();
assert.equal(streamed.choices[0].message.content, second);
assert.equal(streamed.usage.completion_tokens, 3);
const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const image = { type: "image_url", image_url: { url: `data:image/png;base64,${dot}` } };
const seen = await client.chat.completions.create({ model, messages: [user([{ type: "text", text: "js?" }, image])] });
assert.equal(seen.choices[0].message.content, first);

// A question.
messages.push(assistant(second), user("run it"));
const asked = await client.chat.completions.create({ model, messages });
assert.equal(asked.longhaul.question.kind, "approval");
messages.push(assistant(asked.choices[0].message.content), user("yes"));
assert.equal((await client.chat.completions.create({ model, messages })).choices[0].message.content, "Done.");

// What is refused.
await assert.rejects(client.chat.completions.create({ model, messages: [user("x")], n: 2 }), {
  status: 400, code: "unsupported_parameter", param: "n",
});
await assert.rejects(client.chat.completions.create({ model: "gpt-9", messages: [user("x")] }), {
  status: 404, code: "model_not_found",
});

// Responses.
const one = await client.responses.create({ model, input: "js respond", instructions: "Be brief." });
assert.deepEqual([one.status, one.output_text], ["completed", first]);
const events = [];
for await (const event of await client.responses.create({
  model, input: "more", previous_response_id: one.id, stream: true,
})) events.push(event);
assert.deepEqual(events.map((event) => event.sequence_number), events.map((_, index) => index));
const two = events.at(-1).response;
assert.equal(two.output[0].content[0].text, second);
const again = [];
for await (const event of await client.responses.retrieve(two.id, { stream: true, starting_after: 4 })) again.push(event);
assert.deepEqual(again.slice(0, -1), events.slice(5, -1));
const fork = await client.responses.create({ model, input: "other", previous_response_id: one.id });
assert.equal(fork.output_text, second);
const ask = await client.responses.create({ model, input: "run it", conversation: one.conversation.id });
assert.deepEqual([ask.status, ask.incomplete_details.reason], ["incomplete", "question"]);
const done = await client.responses.create({ model, input: "yes", previous_response_id: ask.id });
assert.equal(done.output.at(-1).content[0].text, "Done.");
const slow = await client.responses.create({ model, input: "slow", background: true, previous_response_id: done.id });
assert.equal(slow.status, "in_progress");
assert.equal((await client.responses.cancel(slow.id)).status, "cancelled");
await client.responses.delete(one.id);
await assert.rejects(client.responses.retrieve(one.id), { status: 404 });

// A framework: text and streams over both endpoints, a conversation that goes on.
const { createOpenAI } = await load("@ai-sdk/openai");
const { generateText, streamText } = await load("ai");
const provider = createOpenAI({ baseURL: process.env.BASE_URL, apiKey: process.env.TOKEN });
for (const agent of [provider.chat(model), provider.responses(model)]) {
  const talk = [user(`framework ${agent.provider}`)];
  const result = await generateText({ model: agent, messages: talk });
  assert.equal(result.text, first);
  talk.push(...(result.responseMessages ?? result.response.messages), user("more"));
  const flowing = streamText({ model: agent, messages: talk });
  let text = "";
  for await (const part of flowing.textStream) text += part;
  assert.equal(text, second, agent.provider);
}
console.log("all of it works");
