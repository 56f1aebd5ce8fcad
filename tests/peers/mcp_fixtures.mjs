// Stands between the conformance suite of MCP and `longhaul serve`: adds the token, which the suite can't send, and gives the suite's tools
// that do what a turn does to session_send, unless its third argument is `unchanged`. The model server knows the texts. Everything else goes
// through as it is.
import http from 'node:http';

const [target, token, calls] = process.argv.slice(2);
const tasks = 'io.modelcontextprotocol/tasks';
const capabilities = 'io.modelcontextprotocol/clientCapabilities';

/** What each of these tools of the suite says to a session. */
const withTasks = {
  slow_compute: ({ seconds }) => `compute for ${seconds} seconds`,
  failing_job: () => 'fail',
  confirm_delete: () => 'confirm one',
};
const withoutTasks = {
  greet: ({ name }) => `greet ${name}`,
  test_simple_text: () => 'greet World',
  test_error_handling: () => 'fail',
  test_tool_with_progress: () => 'compute for 1 seconds',
  test_logging_tool: () => 'greet World',
  test_streaming_elicitation: () => 'confirm one',
  test_input_required_result_elicitation: () => 'confirm one',
};
const texts = calls === 'unchanged' ? {} : { ...withTasks, ...withoutTasks };
/** What the suite calls the only question of its tool. */
const question = 'user_name';

let sessions = 0;
/** The question of a call, by the state that comes with it. */
const asked = new Map();

/** The request as the server gets it. Returns the name that stood there before, if it was another. */
function translate(message) {
  const { method, params } = message;
  if (method === 'tools/call' && params?.name in texts) {
    const name = params.name;
    const text = texts[name](params.arguments ?? {});
    Object.assign(params, { name: 'session_send', arguments: { session: `judge:${++sessions}`, text } });
    if (name in withoutTasks) delete params._meta?.[capabilities]?.extensions?.[tasks];
    const response = params.inputResponses?.[question];
    if (asked.has(params.requestState) && response) {
      if (response.action === 'accept') response.content = { answer: 'yes' };
      params.inputResponses = { [asked.get(params.requestState)]: response };
    }
    return name;
  }
  if (method === 'tasks/update' && calls !== 'unchanged') {
    // The suite fills in any form with what its own tools ask for.
    const filled = Object.values(params.inputResponses ?? {}).filter((response) => response.action === 'accept');
    filled.forEach((response) => { response.content = { answer: 'yes' }; });
  }
}

/** The answer with the name that the suite has for its question. */
function rename(text) {
  const message = JSON.parse(text);
  const [id] = Object.keys(message.result?.inputRequests ?? {});
  if (id) {
    asked.set(message.result.requestState, id);
    message.result.inputRequests = { [question]: message.result.inputRequests[id] };
  }
  return JSON.stringify(message);
}

http.createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  let body = Buffer.concat(parts);
  const headers = { ...request.headers, authorization: `Bearer ${token}` };
  let asksInResult = false;
  try {
    const message = JSON.parse(body);
    const before = translate(message);
    // Its answer is one message then, in which the question gets its name.
    asksInResult = before === 'test_input_required_result_elicitation';
    if (asksInResult) headers.accept = 'application/json';
    // A header that was wrong stays wrong.
    if (before && headers['mcp-name']?.trim() === before) headers['mcp-name'] = 'session_send';
    body = Buffer.from(JSON.stringify(message));
    headers['content-length'] = String(body.length);
  } catch {
    // What is no message goes through as it is.
  }
  const options = { host: '127.0.0.1', port: target, path: request.url, method: request.method, headers };
  const forwarded = http.request(options, async (answer) => {
    if (!answer.headers['content-length'] || !asksInResult) {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
      return;
    }
    const parts = [];
    for await (const part of answer) parts.push(part);
    const renamed = Buffer.from(rename(String(Buffer.concat(parts))));
    response.writeHead(answer.statusCode, { ...answer.headers, 'content-length': renamed.length });
    response.end(renamed);
  });
  forwarded.on('error', () => response.destroy());
  response.on('close', () => forwarded.destroy());
  forwarded.end(body);
}).listen(0, '127.0.0.1', function () { console.log(this.address().port); });
