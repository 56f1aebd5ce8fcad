"""An MCP server for tests over HTTP, with a small authorization server in the same process.

Arguments: --login: requests need a token; --expires SECONDS: how long a token lasts; --issuer URL: where the metadata says that one logs
in, in place of here; --sessions: has sessions, which are forgotten once a file `forget.sessions` is there; --port N; --end-on-stdin: ends when standard input does. It prints its port as the first line. The file `http.log` gets a line for each request
and each token that was given. While a file `no-discovery` is there, it says nothing about where one logs in.
"""
import base64, hashlib, json, os, secrets, sys, threading, time, urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

arguments = sys.argv[1:]
folder = os.getcwd()
tokens = {}  # token -> (scopes, until)
codes = {}  # code -> (challenge, scopes)
renewals = {}  # renewal token -> scopes; each is taken once
sessions = set()


def option(name, default):
    return arguments[arguments.index(name) + 1] if name in arguments else default


def log(line):
    with open(os.path.join(folder, "http.log"), "a") as file:
        file.write(line + "\n")


def tool(name, description, hints=None):
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return {"name": name, "description": description, "inputSchema": schema, "annotations": hints or {}}


TOOLS = [
    tool("echo", "Gives the text back", {"readOnlyHint": True}),
    tool("authorization", "Gives the Authorization header back", {"readOnlyHint": True}),
    tool("huge", "Answers with more than fits"),
    tool("endless", "Answers with events that never end"),
    tool("broken", "Answers with what is no message"),
    tool("cut", "Begins to answer, and hangs up"),
    tool("write", "Needs more rights than reading"),
]


# As the example of an SDK answers.
NO_SESSION = {"jsonrpc": "2.0", "error": {"code": -32000, "message": "Bad Request: No valid session ID provided"}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    @property
    def base(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, status, body, headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if "--sessions" in arguments:
            # No call meets a connection that is just being closed.
            self.send_header("Connection", "close")
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def do_GET(self):
        log(f"GET {self.path.split('?')[0]}")
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlparse(self.path).query))
        if self.path.startswith("/.well-known/") and os.path.exists(os.path.join(folder, "no-discovery")):
            return self.answer(404, b"")
        if self.path.startswith("/.well-known/oauth-protected-resource"):
            return self.answer(200, {"resource": f"{self.base}/mcp", "authorization_servers": [option("--issuer", self.base)], "scopes_supported": ["read"]})
        if self.path.startswith("/.well-known/oauth-authorization-server"):
            return self.answer(200, {"issuer": self.base, "authorization_endpoint": f"{self.base}/authorize", "token_endpoint": f"{self.base}/token",
                                     "registration_endpoint": f"{self.base}/register", "response_types_supported": ["code"],
                                     "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["none"]})
        if self.path.startswith("/authorize"):
            code = secrets.token_hex(8)
            codes[code] = (query["code_challenge"], query.get("scope", ""))
            log(f"authorize {query.get('scope', '')}")
            back = query["redirect_uri"] + "?" + urllib.parse.urlencode({"code": code, "state": query["state"]})
            return self.answer(302, b"", [("Location", back)])
        if self.path == "/mcp" and "--sessions" in arguments:
            return self.answer(400, NO_SESSION)
        self.answer(405 if self.path == "/mcp" else 404, b"")

    def do_DELETE(self):
        self.answer(405, b"")

    def do_POST(self):
        if self.path == "/register":
            self.body()
            return self.answer(201, {"client_id": "client-" + secrets.token_hex(4), "redirect_uris": []})
        if self.path == "/token":
            return self.give_token(dict(urllib.parse.parse_qsl(self.body().decode())))
        message = json.loads(self.body())
        method = message.get("method")
        log(f"POST {method}")
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        scopes, until = tokens.get(given, ("", 0))
        if "--login" in arguments and until < time.time():
            challenge = f'Bearer resource_metadata="{self.base}/.well-known/oauth-protected-resource/mcp"'
            return self.answer(401, {"error": "invalid_token"}, [("WWW-Authenticate", challenge)])
        if "--login" in arguments and method == "tools/call" and message["params"]["name"] == "write" and "write" not in scopes.split():
            challenge = f'Bearer error="insufficient_scope", scope="write", resource_metadata="{self.base}/.well-known/oauth-protected-resource/mcp"'
            return self.answer(403, {"error": "insufficient_scope"}, [("WWW-Authenticate", challenge)])
        if os.path.exists(os.path.join(folder, "forget.sessions")):
            os.remove(os.path.join(folder, "forget.sessions"))
            sessions.clear()
        if "--sessions" in arguments and method not in ("initialize", "server/discover") and self.headers.get("Mcp-Session-Id") not in sessions:
            return self.answer(400, NO_SESSION)
        if "id" not in message:
            return self.answer(202, b"")
        headers = []
        if method == "initialize":
            if "--sessions" in arguments:
                session = secrets.token_hex(8)
                sessions.add(session)
                headers = [("Mcp-Session-Id", session)]
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "http", "version": "1"}}
        elif method == "tools/list":
            result = {"tools": TOOLS}
        elif method == "tools/call":
            return self.call(message)
        else:
            return self.answer(200, {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": f"no method {method}"}})
        self.answer(200, {"jsonrpc": "2.0", "id": message["id"], "result": result}, headers)

    def call(self, message):
        name, text = message["params"]["name"], message["params"].get("arguments", {}).get("text", "")
        if name == "huge":
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            return self.pour(b"x" * (1 << 20), 100)
        if name == "endless":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            return self.pour(b"data: " + b"x" * (1 << 20), None)
        if name == "cut":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            event = b"id: 1\ndata: \n\n"
            self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(event), event))
            return
        if name == "write":
            log(f"write {text}")
        if name == "broken":
            return self.answer(200, b"<html>hello</html>")
        if name == "authorization":
            text = self.headers.get("Authorization", "none")
        result = {"content": [{"type": "text", "text": text or f"called {name}"}]}
        self.answer(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})

    def pour(self, chunk, count):
        """Sends chunks until there were enough, or the client hangs up, which is logged."""
        sent = 0
        try:
            while count is None or sent < count:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                sent += 1
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            log(f"hung up after {sent}")
            self.close_connection = True

    def give_token(self, form):
        log(f"token {form['grant_type']}")
        if form["grant_type"] == "authorization_code":
            challenge, scopes = codes.pop(form["code"], (None, ""))
            digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
            if challenge != base64.urlsafe_b64encode(digest).rstrip(b"=").decode():
                return self.answer(400, {"error": "invalid_grant"})
        else:
            scopes = renewals.pop(form["refresh_token"], None)
            if scopes is None:
                return self.answer(400, {"error": "invalid_grant"})
        token, renewal, lasts = "access-" + secrets.token_hex(16), "renewal-" + secrets.token_hex(16), int(option("--expires", "3600"))
        # A token is refused as soon as the client should have renewed it.
        tokens[token], renewals[renewal] = (scopes, time.time() + max(lasts, 3600)), scopes
        log(f"gave {token} {renewal}")
        self.answer(200, {"access_token": token, "token_type": "Bearer", "expires_in": lasts, "refresh_token": renewal, "scope": scopes})


server = ThreadingHTTPServer(("127.0.0.1", int(option("--port", "0"))), Handler)
server.daemon_threads = True
print(server.server_port, flush=True)
if "--end-on-stdin" in arguments:
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
server.serve_forever()
