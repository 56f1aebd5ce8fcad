// The tree of a session's subagents: how each is doing, a link to its conversation, and a button that stops it.

import { api } from "./api.js";
import { emptyState, h, replaceChildren } from "./dom.js";
import { formatAgo, formatCost, formatDuration, sessionHref, showControls } from "./format.js";
import { keepFresh, syncItems } from "./live-list.js";
import { singleFlight } from "./single-flight.js";
import { STATUS, killButton } from "./tasks.js";

/** @typedef {{element: HTMLElement, list: HTMLElement, below: Map<string, any>, update: (agent: any) => void}} AgentItem */

/** @param {HTMLElement} place @param {string} session */
export async function agentsPanel(place, session) {
  const tree = h("ul", { class: "tasks" });
  const nothing = h("div", {});
  /** @type {Map<string, AgentItem>} */
  const items = new Map();
  place.append(h("h2", {}, "Subagents"), tree, nothing);
  const refresh = singleFlight(load);
  return keepFresh(refresh);

  async function load() {
    const { items: agents } = await api(`/api/agents?session=${encodeURIComponent(session)}&limit=1000`);
    replaceChildren(nothing, agents.length === 0 ? emptyState("No subagents", "What this session has other agents do appears here.") : null);
    show(tree, items, agents.filter((/** @type {any} */ agent) => agent.depth === 1));

    /** @param {HTMLElement} list @param {Map<string, AgentItem>} items @param {any[]} level */
    function show(list, items, level) {
      syncItems(list, items, level, (agent) => agent.id, (agent) => agentItem(agent, () => void refresh().catch(() => {})));
      for (const { id, session } of level) {
        const item = items.get(id);
        if (item) show(item.list, item.below, agents.filter((/** @type {any} */ agent) => agent.parent === session));
      }
    }
  }
}

/** A subagent, with those that it has started. @param {any} agent @param {() => void} stopped @returns {AgentItem} */
function agentItem(agent, stopped) {
  const state = h("span", {});
  const facts = h("p", { class: "facts" });
  const message = h("p", { class: "quiet", dir: "auto" });
  const list = h("ul", { class: "tasks" });
  const stop = killButton(agent.task_id, agent.parent, stopped, "Stop");
  const link = h("a", { href: sessionHref(agent.session) }, agent.description || showControls(agent.session));
  const element = h("li", {}, h("div", { class: "card task", role: "group", "aria-label": `Subagent ${agent.description}` }, h("div", { class: "task-row" }, state, h("span", { dir: "auto" }, link), stop), facts, message), list);
  /** @type {Map<string, AgentItem>} */
  const below = new Map();
  return { element, update, list, below };

  /** @param {any} now */
  function update(now) {
    state.className = `state state-${now.status}`;
    state.textContent = STATUS[/** @type {keyof typeof STATUS} */ (now.status)] ?? now.status;
    link.href = sessionHref(now.session);
    if (stop) stop.hidden = now.status !== "running";
    const known = [now.name, now.cost === null ? "" : formatCost(now.cost), now.duration_ms ? formatDuration(now.duration_ms) : "", formatAgo(now.started_at)];
    facts.textContent = showControls(known.filter(Boolean).join(" · "));
    replaceChildren(message, now.message ?? "");
  }
}
