"""An MCP server for tests, over its standard input and output.

Arguments: --late SECONDS before the first answer; --modern: the stateless protocol, with tasks; --noise: prints what is no message;
--many N: N more tools. --early: from before the stateless protocol, so that its first message ends the server. It has the resources `note://…` and the prompt `plan`. The file `calls.log` gets a line for each call that has an effect; the file `tools.txt`, if it is there, has the
names of further tools, one a line; while there is a file `other.schema`, echo takes other arguments. A task ends once there is a file `task.done`, or after --polls N
polls; with --task-asks it asks the user first. With --schemas BYTES each schema is that large. While there is a file `strict.schema`, all arguments are required. While there is a file `list.hangs`, it does not list its tools. If there is a file `die.on.poll`, the next poll removes it and ends the server.
"""
import json, os, sys, time

arguments = sys.argv[1:]
modern = "--modern" in arguments


def option(name, default):
    return arguments[arguments.index(name) + 1] if name in arguments else default


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def log(line):
    with open("calls.log", "a") as calls:
        calls.write(line + "\n")


def tool(name, description, hints=None, fields=("text",)):
    schema = {"type": "object", "properties": {field: {"type": "string"} for field in fields}}
    if "--schemas" in arguments:
        schema["properties"]["text"] = {"type": "string", "description": "x" * int(option("--schemas", "0"))}
    if os.path.exists("strict.schema"):
        schema["required"] = list(fields)
    return {"name": name, "description": description, "inputSchema": schema, "annotations": hints or {}}


def tools():
    found = [
        tool("write", "Writes a line to the log"),
        tool("echo", "Gives the text back", {"readOnlyHint": True}, ("words",) if os.path.exists("other.schema") else ("text",)),
        tool("put", "Writes a line, once or twice is the same", {"idempotentHint": True}),
        tool("die", "Ends the server in the middle of the call"),
        tool("hang", "Never answers; with the text `the first`, only the first call does that, and the next ones ask"),
        tool("huge", "Answers with more than fits"),
        tool("fail", "Answers with an error"),
        tool("task", "Goes on as a task"),
        tool("ask", "Asks the user"),
        tool("variables", "Gives the names of its environment variables", {"readOnlyHint": True}),
    ]
    found += [tool(f"extra_{n:03}", f"Does thing number {n}, with a long description of what it is good for") for n in range(int(option("--many", "0")))]
    if os.path.exists("tools.txt"):
        found += [tool(name, "A further tool") for name in open("tools.txt", encoding="utf-8").read().split()]
    return found


def text(content, **more):
    kind = {"resultType": "complete"} if modern else {}
    return {"content": [{"type": "text", "text": content}], **kind, **more}


def task(identifier):
    polls = int(option("--polls", "0"))
    asks = "--task-asks" in arguments and not os.path.exists("task.answer")
    done = not asks and (os.path.exists("task.done") or 0 < polls <= logged("poll"))
    status = "input_required" if asks else "completed" if done else "failed" if os.path.exists("task.failed") else "working"
    found = {"taskId": identifier, "status": status, "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
             "ttlMs": None, "pollIntervalMs": 50}
    return {**found, **({"result": text("the task is done")} if done else {}), **({"inputRequests": {"colour": question()}} if asks else {}),
            **({"error": {"code": -32000, "message": "the paint has run out"}} if status == "failed" else {})}


def logged(line):
    return open("calls.log").read().split("\n").count(line) if os.path.exists("calls.log") else 0


def question():
    schema = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
    return {"method": "elicitation/create", "params": {"message": "Which colour?", "mode": "form", "requestedSchema": schema}}


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
RESOURCES = {
    "note://today": {"text": "the ferry leaves at noon"},
    "note://big": {"text": "x" * 400_000},
    "note://pixel": {"mimeType": "image/png", "blob": PIXEL},
}


def listed(**entries):
    return {**entries, **({"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if modern else {})}


def resource(uri):
    log(f"read {uri}")
    return listed(contents=[{"uri": uri, **RESOURCES[uri]}])


def prompt(params):
    given = params.get("arguments", {})
    said = f"Plan {given.get('day', 'a day')} in {given['city']}. Remember that the user hates trains."
    done = {"resultType": "complete"} if modern else {}
    return {"messages": [{"role": "user", "content": {"type": "text", "text": said}}], **done}


def call(identifier, params):
    name, arguments_of_call = params["name"], params.get("arguments", {})
    given = arguments_of_call.get("words", "") or arguments_of_call.get("text", "")
    if name == "echo" and given == "for ever":
        log("echo for ever")
        return None
    if name == "echo" and given == "ask the user":
        name = "ask"
    if name == "echo":
        return text(given)
    if name == "variables":
        return text(" ".join(sorted(os.environ)))
    if name == "put" and given == "into the cache":
        with open(os.path.expanduser("~/.npm/kept"), "a+") as kept:
            kept.write("line\n")
            kept.seek(0)
            return text(f"{len(kept.readlines())} in {os.getcwd()}")
    if name in ("write", "put"):
        log(f"{name} {given}")
        return text("written")
    if name == "die":
        log("die")
        sys.stderr.write("the disk is on fire\n")
        sys.exit(3)
    if name == "hang" and given == "the first":
        # The next one asks.
        if os.path.exists("calls.log") and "hang" in open("calls.log").read():
            name = "ask"
    if name == "hang":
        log("hang")
        return None
    if name == "huge":
        sys.stdout.write('{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' % json.dumps(identifier))
        for _ in range(100):
            sys.stdout.write("x" * (1 << 20))
        sys.stdout.write('"}]}}\n')
        return None
    if name == "fail":
        return text("it went wrong", isError=True)
    if name == "task" and modern:
        log("task")
        return {"resultType": "task", **{key: value for key, value in task("task-1").items() if key in ("taskId", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs")}, "status": "working"}
    if name == "ask":
        log("ask")
        send({"id": "question", **question()})
        answer = json.loads(sys.stdin.readline())
        if "result" not in answer:
            log(answer["method"])
            return None
        answer = answer["result"]
        return text(f"{answer['action']} {answer.get('content', {}).get('colour', '')}".strip())
    return text(f"called {name}")


subscription = None
if "--noise" in arguments:
    print("Welcome to the server!", flush=True)
time.sleep(float(option("--late", "0")))
log(f"started {os.getpid()}")
for line in sys.stdin:
    message = json.loads(line)
    method, identifier = message.get("method"), message.get("id")
    if identifier is None:
        if method == "notifications/cancelled":
            log(method)
        continue
    result = None
    if method == "server/discover" and "--early" in arguments:
        sys.exit("1 validation error for ClientRequest")
    if method == "server/discover" and modern:
        result = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
                  "capabilities": {"tools": {"listChanged": True}, "resources": {}, "prompts": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}, "serverInfo": {"name": "test", "version": "1"}}
    elif method == "initialize" and not modern:
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": True}, "resources": {}, "prompts": {}}, "serverInfo": {"name": "test", "version": "1"}}
    elif method == "tools/list" and os.path.exists("list.hangs"):
        log("list hangs")
        continue
    elif method == "tools/list":
        result = listed(tools=tools())
    elif method == "resources/list":
        result = listed(resources=[{"uri": uri, "name": uri, "title": f"Note of {uri[7:]}"} for uri in RESOURCES])
    elif method == "resources/read" and message["params"]["uri"] in RESOURCES:
        result = resource(message["params"]["uri"])
    elif method == "resources/read":
        send({"id": identifier, "error": {"code": -32002, "message": "there is no such note"}})
        continue
    elif method == "prompts/list":
        arguments_of_plan = [{"name": "city", "required": True}, {"name": "day"}]
        result = listed(prompts=[{"name": "plan", "description": "Plans a day", "arguments": arguments_of_plan}])
    elif method == "prompts/get":
        result = prompt(message["params"])
    elif method == "tools/call":
        result = call(identifier, message["params"])
        if result is None:
            continue
    elif method == "tasks/get":
        log("poll")
        if os.path.exists("die.on.poll"):
            os.remove("die.on.poll")
            sys.exit(3)
        result = {"resultType": "complete", **task(message["params"]["taskId"])}
    elif method == "subscriptions/listen":
        subscription = {"io.modelcontextprotocol/subscriptionId": identifier}
        send({"method": "notifications/subscriptions/acknowledged", "params": {"_meta": subscription, "notifications": {"toolsListChanged": True}}})
        continue
    elif method == "tasks/cancel":
        log(method)
        result = {"resultType": "complete"}
    elif method == "tasks/update":
        answer = message["params"]["inputResponses"]["colour"]
        log(f"task answer {answer['action']} {answer.get('content', {}).get('colour', '')}".strip())
        open("task.answer", "w").close()
        result = {"resultType": "complete"}
    else:
        send({"id": identifier, "error": {"code": -32601, "message": f"no method {method}"}})
        continue
    send({"id": identifier, "result": result})
    if os.path.exists("change.now") and method == "tools/call":
        if not modern:
            send({"method": "notifications/tools/list_changed"})
        elif subscription:
            send({"method": "notifications/tools/list_changed", "params": {"_meta": subscription}})
