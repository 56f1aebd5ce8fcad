// The installation: who may reach it, and whether it is well.

import { api } from "./api.js";
import { h } from "./dom.js";
import { formatMoment } from "./format.js";

/** @type {import("./app.js").View} */
export async function tokensView(place) {
  document.title = "Tokens · Longhaul";
  const list = await api("/api/tokens");
  const origins = { journal: "longhaul token new", file: "the first start", env: "the environment" };
  place.append(
    h("h1", {}, "Tokens"),
    h("p", {}, "Who may reach this server. ", h("code", {}, "longhaul token new --name NAME --scope read|act|admin"), " makes a token, ", h("code", {}, "longhaul token revoke NAME"), " ends it and everything that is signed in with it."),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Tokens" }, h("table", {}, h("thead", {}, h("tr", {}, ["Name", "Scope", "Made by", "Made on"].map((text) => h("th", { scope: "col" }, text)))), h("tbody", {}, list.items.map((/** @type {any} */ token) => h("tr", {}, h("th", { scope: "row" }, token.name), h("td", {}, token.scope), h("td", {}, origins[/** @type {keyof typeof origins} */ (token.origin)] ?? token.origin), h("td", {}, token.created ? formatMoment(token.created) : "")))))),
  );
}

/** @type {import("./app.js").View} */
export async function doctorView(place) {
  document.title = "Doctor · Longhaul";
  place.append(h("h1", {}, "Doctor"), h("p", { class: "quiet", role: "status" }, "Looking…"));
  const [doctor, status] = await Promise.all([api("/api/doctor"), api("/api/status")]);
  place.querySelector("[role=status]")?.remove();
  place.append(
    h("p", {}, doctor.ok ? "Everything is well." : "Something needs your attention."),
    h("ul", { class: "checks" }, doctor.items.map((/** @type {any} */ item) => h("li", { class: item.ok ? "ok" : "wrong" }, h("span", { class: "sign", role: "img", "aria-label": item.ok ? "well" : "not well" }, item.ok ? "✓" : "✗"), h("strong", {}, item.check), h("p", {}, item.found), item.to_do ? h("p", {}, item.to_do) : null))),
    h("p", { class: "facts" }, `Longhaul ${status.version}, process ${status.pid}, ${status.home}`),
  );
}
