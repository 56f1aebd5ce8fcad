// Prints a line for each event of a stream: its id, and its type. The client reconnects by itself.
const [library, url, token] = process.argv.slice(2);
const { EventSource } = await import(library);
const authorised = (input, init) =>
  fetch(input, { ...init, headers: { ...init.headers, Authorization: `Bearer ${token}` } });
const source = new EventSource(url, { fetch: authorised });
source.onmessage = (message) => {
  const { seq, type } = JSON.parse(message.data);
  console.log(JSON.stringify({ id: seq === undefined ? null : message.lastEventId, type }));
};
source.onerror = (error) => console.error(`event source: ${error.code ?? ""} ${error.message ?? ""}`);
// The client's wait before it reconnects does not keep Node alive.
setInterval(() => {}, 1000);
