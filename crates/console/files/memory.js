// What the agents remember: pages, their versions and differences, where each was said, and undoing.

import { Problem, api, can } from "./api.js";
import { announce, emptyState, errorText, fragmentOf, h, replaceChildren } from "./dom.js";
import { formatCost, formatCount, formatMoment, formatUnindexed, sessionHref, showControls } from "./format.js";
import { diffLines } from "./questions.js";

const AUTHORS = { consolidation: "consolidation", person: "a person", note: "a note", undo: "an undo" };

/** @type {import("./app.js").View} */
export async function memoryView(place, scope = "", page = "") {
  document.title = "Memory · Longhaul";
  if (!scope) return scopesView(place);
  if (!page) return scopeView(place, scope);
  return pageView(place, scope, page);
}

/** @param {string} scope @param {string} [rest] */
function memoryPath(scope, rest = "") {
  return `/api/memory/${encodeURIComponent(scope)}${rest}`;
}

/** @param {HTMLElement} place */
async function scopesView(place) {
  const list = await api("/api/memory?limit=1000");
  place.append(h("h1", {}, "Memory"));
  if (list.items.length === 0) {
    place.append(emptyState("Nothing remembered yet", "Memory is written in the background, when sessions are idle."));
    return;
  }
  place.append(h("ul", { class: "plain-list" }, list.items.map((/** @type {any} */ item) => h("li", {}, h("a", { href: `#/memory/${encodeURIComponent(item.scope)}` }, item.scope)))));
}

/** @param {HTMLElement} place @param {string} scope */
async function scopeView(place, scope) {
  const [pages, log] = await Promise.all([api(memoryPath(scope, "/pages?limit=1000")), api(memoryPath(scope, "/log?limit=50"))]);
  const hits = h("div", {});
  const words = h("input", { type: "search", id: "memory-search" });
  place.append(
    h("p", { class: "trail" }, h("a", { href: "#/memory" }, "Memory")),
    h("h1", {}, scope),
    h("form", { class: "search-row", onsubmit: search }, h("label", { for: "memory-search" }, "Search"), words, h("button", { type: "submit" }, "Search")),
    hits,
    h("h2", {}, "Pages"),
    pages.items.length === 0
      ? emptyState("No pages yet", "Memory is written in the background, when sessions are idle.")
      : h("ul", { class: "plain-list" }, pages.items.map((/** @type {any} */ item) => h("li", {}, h("a", { href: `#/memory/${encodeURIComponent(scope)}/${encodeURIComponent(item.page)}` }, item.page), " ", h("span", { class: "quiet", dir: "auto" }, item.first_line)))),
    h("h2", {}, "Changes"),
    changeList(scope, log.items),
  );

  /** @param {Event} event */
  async function search(event) {
    event.preventDefault();
    if (!words.value.trim()) return;
    const found = await api(memoryPath(scope, `/search?query=${encodeURIComponent(words.value.trim())}`)).catch((error) => ({ items: [], error }));
    if (found.error) return replaceChildren(hits, h("p", { role: "alert", class: "wrong" }, found.error.message));
    replaceChildren(hits, h("p", { role: "status" }, `${found.items.length} found${formatUnindexed(found.unindexed)}`), h("ul", { class: "plain-list" }, found.items.map(hitItem)));
  }

  /** @param {any} hit */
  function hitItem(hit) {
    const seq = hit.seq ?? hit.sources[0];
    const target = hit.page ? `#/memory/${encodeURIComponent(scope)}/${encodeURIComponent(hit.page)}` : hit.session && seq ? `${sessionHref(hit.session)}/at/${seq}` : null;
    const name = hit.page ?? hit.session ?? "";
    return h("li", {}, target ? h("a", { href: target }, name) : name, " ", h("span", { dir: "auto" }, hit.excerpt));
  }
}

/** @param {HTMLElement} place @param {string} scope @param {string} name */
async function pageView(place, scope, name) {
  const path = memoryPath(scope, `/pages/${encodeURIComponent(name)}`);
  const [page, log] = await Promise.all([api(path), api(memoryPath(scope, `/log?limit=100&page=${encodeURIComponent(name)}`))]);
  const text = h("div", { class: "markdown card", dir: "auto", tabindex: "0" }, fragmentOf(page.html));
  const field = h("textarea", { id: "page-text", rows: 12, dir: "auto" });
  const message = h("p", { role: "alert", class: "wrong" });
  const form = h("form", { hidden: true, onsubmit: save }, h("label", { for: "page-text" }, "Text of the page"), field, message, h("button", { type: "submit", class: "primary" }, "Save"), " ", h("button", { type: "button", onclick: () => showEditor(false) }, "Discard"));
  const edit = h("button", { type: "button", hidden: !can("admin"), onclick: () => showEditor(true) }, "Edit");
  replaceChildren(
    place,
    h("p", { class: "trail" }, h("a", { href: "#/memory" }, "Memory"), " / ", h("a", { href: `#/memory/${encodeURIComponent(scope)}` }, scope)),
    h("div", { class: "title-row" }, h("h1", {}, name), edit),
    h("h2", { class: "unseen" }, "Text"),
    text,
    form,
    pageSources(page.sources_list),
    h("h2", {}, "Versions"),
    changeList(scope, log.items, () => void reload()),
  );

  /** Shows the page as it is now. What is shown stays until that is known. */
  async function reload() {
    const fresh = h("div", {});
    try {
      await pageView(fresh, scope, name);
      place.replaceChildren(...fresh.childNodes);
    } catch (error) {
      message.textContent = errorText(error);
      form.hidden = false;
    }
  }

  /** @param {boolean} isOpen */
  function showEditor(isOpen) {
    form.hidden = !isOpen;
    text.hidden = isOpen;
    edit.hidden = isOpen;
    if (!isOpen) return;
    field.value = page.text;
    field.focus();
  }

  /** @param {Event} event */
  async function save(event) {
    event.preventDefault();
    try {
      await api(path, { method: "PUT", body: { text: field.value, made_from: page.version } });
      await reload();
    } catch (error) {
      message.textContent = error instanceof Problem && error.code === "page_changed" ? "The page was changed meanwhile. Copy your text, and load the page again." : errorText(error);
    }
  }
}

/** @param {string} scope @param {any[]} changes @param {() => void} [undone] */
function changeList(scope, changes, undone = () => {}) {
  if (changes.length === 0) return h("p", { class: "quiet" }, "There are no changes yet.");
  return h("ol", { class: "changes", reversed: true }, changes.map((change) => changeItem(scope, change, undone)));
}

/** @param {string} scope @param {any} change @param {() => void} undone */
function changeItem(scope, change, undone) {
  const place = h("pre", { class: "diff", tabindex: "0" });
  const message = h("span", { role: "alert", class: "wrong" });
  const undo = h("button", { type: "button", hidden: !can("admin"), onclick: undoChange }, "Undo");
  const sources = h("div", {});
  const fold = h("details", { ontoggle: loadDiff }, h("summary", {}, "What changed, and where it was said"), place, sources);
  const names = change.pages.map((/** @type {any} */ page) => page.page).join(", ");
  return h(
    "li",
    { class: "card" },
    h("p", {}, h("time", { datetime: change.at }, formatMoment(change.at)), ` by ${AUTHORS[/** @type {keyof typeof AUTHORS} */ (change.by)] ?? change.by}: `, h("strong", {}, names), change.cost ? h("span", { class: "quiet" }, ` · ${formatCost(change.cost)}`) : null),
    change.reason ? h("p", { dir: "auto" }, change.reason) : null,
    fold,
    h("p", {}, undo, " ", message),
  );

  async function loadDiff() {
    if (!fold.open || place.childNodes.length > 0) return;
    const diff = await api(memoryPath(scope, `/diff/${change.seq}`)).catch((error) => ({ diff: error.message, sources: [] }));
    replaceChildren(place, diffLines(diff.diff));
    replaceChildren(sources, sourceList(diff.sources ?? []));
  }

  async function undoChange() {
    undo.disabled = true;
    try {
      await api(memoryPath(scope, `/undo/${change.seq}`), { method: "POST" });
      message.textContent = "";
      announce("Undone");
      undo.textContent = "Undone";
      undone();
    } catch (error) {
      message.textContent = errorText(error);
      undo.disabled = false;
    }
  }
}

/** Links to the records that a page was made from. @param {{session: string, seq: number}[]} sources */
function pageSources(sources) {
  if (sources.length === 0) return null;
  const link = (/** @type {{session: string, seq: number}} */ { session, seq }) => h("li", {}, h("a", { href: `${sessionHref(session)}/at/${seq}` }, `${showControls(session)}, record ${formatCount(seq)}`));
  return h("details", {}, h("summary", {}, `Where it was said (${sources.length})`), h("ul", { class: "plain-list" }, sources.map(link)));
}

/** Links to the places where it was said. @param {any[]} sources */
function sourceList(sources) {
  if (sources.length === 0) return null;
  return h("ul", { class: "plain-list" }, sources.map((source) => h("li", {}, h("a", { href: `${sessionHref(source.session)}/at/${source.seq}` }, "Said here"), " ", h("span", { class: "quiet", dir: "auto" }, source.text))));
}
