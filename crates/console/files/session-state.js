// The state of a session in words: what it is doing, or how its last turn ended.

const STATES = { question: "waits for your answer", working: "working", interrupted: "interrupted", idle: "idle", failed: "failed", trashed: "in the trash" };
/** How the last turn of a quiet session ended, if it did not complete. */
const OUTCOMES = { failed: "failed", cancelled: "cancelled", limit: "limit reached" };

/** What began a turn, unless a person did. @type {Record<string, string>} */
export const CAUSES = { schedule: "by a schedule", task: "by the end of a task", child: "by the end of a subagent", subagent: "by the parent agent", message: "by another agent" };

/**
 * The name of the state for the style sheet, its text, and what the session is doing or why its last turn ended early.
 * @param {any} session a summary, a status, or a message of the overview
 * @returns {{name: string, text: string, reason: string}}
 */
export function stateOf(session) {
  const ended = session.state === "idle" ? OUTCOMES[/** @type {keyof typeof OUTCOMES} */ (session.last_outcome)] : undefined;
  if (ended) return { name: session.last_outcome, text: ended, reason: session.failure ?? "" };
  const text = STATES[/** @type {keyof typeof STATES} */ (session.state)] ?? session.state;
  // The question itself is shown.
  const reason = session.state === "question" ? "" : (session.doing ?? session.failure ?? "");
  return { name: session.state, text, reason };
}
