// Stands between an editor and its agent, and appends each line to the file ACP_LINES: "> " from the editor, "< " from the agent.
// Usage: acp_tee.mjs PROGRAM ARGUMENTS…
import { spawn } from "node:child_process";
import { appendFileSync } from "node:fs";

const [program, ...words] = process.argv.slice(2);
const agent = spawn(program, words, { stdio: ["pipe", "pipe", "inherit"] });

function copy(from, to, mark) {
  let rest = "";
  from.on("data", (chunk) => {
    const lines = (rest + chunk.toString()).split("\n");
    rest = lines.pop();
    lines.filter(Boolean).forEach((line) => appendFileSync(process.env.ACP_LINES, `${mark} ${process.pid} ${line}\n`));
    to.write(chunk);
  });
  from.on("end", () => to.end());
  to.on("error", () => {});
}

copy(process.stdin, agent.stdin, ">");
copy(agent.stdout, process.stdout, "<");
process.on("SIGTERM", () => agent.kill("SIGTERM"));
agent.on("exit", (code) => process.exit(code ?? 1));
