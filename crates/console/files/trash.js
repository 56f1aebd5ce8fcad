// Sessions in the trash. They stay until retention removes them, and can be restored until then.

import { api, can, sessionPath } from "./api.js";
import { announce, emptyState, h, replaceChildren } from "./dom.js";
import { formatAgo, showControls } from "./format.js";

/** @type {import("./app.js").View} */
export async function trashView(place) {
  document.title = "Trash · Longhaul";
  const body = h("div", {});
  place.append(h("p", { class: "trail" }, h("a", { href: "#/" }, "Sessions")), h("h1", {}, "Trash"), body);
  await load();

  async function load() {
    const list = await api("/api/sessions?limit=1000&state=trashed");
    replaceChildren(body, list.items.length === 0 ? emptyState("The trash is empty", "A deleted session can be restored from here.") : h("ul", { class: "sessions" }, list.items.map(row)));
  }

  /** @param {any} session */
  function row(session) {
    const message = h("span", { role: "alert", class: "wrong" });
    const restore = h("button", { type: "button", "aria-label": `Restore ${showControls(session.key)}`, onclick: restoreSession }, "Restore");
    const name = h("a", { class: "session-link", href: `#/session/${encodeURIComponent(session.key)}` }, h("span", { class: "session-title", dir: "auto" }, session.title ?? "(nothing said yet)"), h("span", { class: "session-key" }, showControls(session.key)));
    return h("li", { class: "session" }, name, can("admin") ? restore : null, h("p", { class: "facts" }, [session.work_dir, formatAgo(session.last_at)].filter(Boolean).join(" · ")), message);

    async function restoreSession() {
      restore.disabled = true;
      try {
        await api(sessionPath(session.id, "/restore"), { method: "POST" });
        announce(`Restored ${session.key}`);
        await load();
      } catch (error) {
        message.textContent = String(/** @type {Error} */ (error).message);
        restore.disabled = false;
      }
    }
  }
}
