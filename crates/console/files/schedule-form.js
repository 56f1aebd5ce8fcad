// The form that makes a schedule or changes one. The server checks what is written in it, and its words stand at the form.

import { errorText, h } from "./dom.js";

const KINDS = [["cron", "Cron line", "0 7 * * 1-5"], ["every", "Interval", "30m"], ["at", "Once", "2026-12-24T18:00"]];
const MISSED = [["latest", "Run the newest"], ["all", "Run each"], ["none", "Skip them"]];
const OVERLAP = [["queue", "Wait for its end"], ["skip", "Skip"], ["interrupt", "Interrupt it"]];
/** Texts that are sent only if there are any: their names, labels and examples. */
const PLACES = [["zone", "Time zone", "Europe/Berlin"], ["session", "Session", "one for each run"], ["work_dir", "Work folder", "that of the server"]];
const LIMITS = [["grace", "How late a run may start", "1h"], ["jitter", "Longest delay", "0s"]];
const NUMBERS = [["cost_per_run", "US dollars per run (0: no limit)", "any", 0], ["max_failures", "Pause after failures (0: never)", "1", 5]];

/** Counts forms, whose fields need ids. */
let forms = 0;

/**
 * @param {any} known the schedule to change; null for a new one
 * @param {(body: any) => Promise<any>} send
 * @param {(name: string) => void} saved
 * @param {() => void} close
 */
export function scheduleForm(known, send, saved, close) {
  forms += 1;
  const prefix = `schedule${forms}-`;
  /** The fields by their names in the API. @type {Record<string, any>} */
  const fields = {};
  const kind = KINDS.find(([name]) => known?.[/** @type {string} */ (name)]) ?? KINDS[0];
  const message = h("p", { role: "alert", class: "wrong" });
  const form = h(
    "form",
    { class: "new-session card", onsubmit: submit, "aria-label": known ? "Change the schedule" : "New schedule" },
    h(
      "div",
      { class: "fields" },
      known ? null : text("name", "Name", "", { required: true, maxlength: 64 }),
      choice("kind", "When", KINDS, kind?.[0]),
      text("time", "Time", known?.[kind?.[0] ?? ""] ?? "", { required: true, placeholder: kind?.[2] }),
      PLACES.slice(0, 1).map(place),
    ),
    field("prompt", "What the agent is asked to do", h("textarea", { rows: 3, dir: "auto", required: true })),
    h(
      "details",
      {},
      h("summary", {}, "More"),
      h(
        "div",
        { class: "fields" },
        PLACES.slice(1).map(place),
        choice("missed", "Runs that were missed", MISSED, known?.missed),
        choice("overlap", "While the run before goes on", OVERLAP, known?.overlap),
        LIMITS.map(([name = "", label, usual]) => text(name, label, known?.[name] ?? usual, {})),
        NUMBERS.map(([name, label, step, usual]) => text(String(name), label, known?.[String(name)] ?? usual, { type: "number", min: 0, step })),
      ),
      check("heartbeat", "Heartbeat: a run may end with “nothing to do”, and leaves no trace then", known?.heartbeat),
      check("enabled", "Enabled", known?.enabled ?? true),
    ),
    message,
    h("div", { class: "orders" }, h("button", { type: "submit", class: "primary" }, known ? "Save" : "Add"), h("button", { type: "button", onclick: close }, "Discard")),
  );
  fields.prompt.value = known?.prompt ?? "";
  fields.kind.addEventListener("change", () => {
    fields.time.placeholder = KINDS[fields.kind.selectedIndex]?.[2] ?? "";
  });
  return form;

  /** @param {string} name @param {any} label @param {any} element */
  function field(name, label, element) {
    element.id = prefix + name;
    fields[name] = element;
    return h("div", {}, h("label", { for: element.id }, label), element);
  }

  /** @param {string} name @param {any} label @param {any} value @param {Record<string, any>} attributes */
  function text(name, label, value, attributes) {
    return field(name, label, h("input", { autocomplete: "off", spellcheck: "false", value, ...attributes }));
  }

  /** @param {(string | undefined)[]} place */
  function place([name = "", label, placeholder]) {
    return text(name, label, known?.[name] ?? "", { placeholder });
  }

  /** @param {string} name @param {string} label @param {string[][]} options @param {string | undefined} chosen */
  function choice(name, label, options, chosen) {
    return field(name, label, h("select", {}, options.map(([value, words]) => h("option", { value, selected: value === chosen }, words))));
  }

  /** @param {string} name @param {string} label @param {boolean} [isOn] */
  function check(name, label, isOn) {
    const box = h("input", { type: "checkbox", id: prefix + name, checked: isOn });
    fields[name] = box;
    return h("p", { class: "check" }, box, h("label", { for: box.id }, label));
  }

  /** What the server gets. @returns {Record<string, any>} */
  function body() {
    const texts = ["name", ...PLACES.map(([name = ""]) => name), ...LIMITS.map(([name = ""]) => name)];
    const given = texts.map((name) => [name, fields[name]?.value.trim()]).filter(([, value]) => value);
    const numbers = NUMBERS.map(([name]) => [name, fields[String(name)].value]).filter(([, value]) => value !== "").map(([name, value]) => [name, Number(value)]);
    return { ...Object.fromEntries([...given, ...numbers]), [fields.kind.value]: fields.time.value.trim(), prompt: fields.prompt.value, missed: fields.missed.value, overlap: fields.overlap.value, heartbeat: fields.heartbeat.checked, enabled: fields.enabled.checked };
  }

  /** @param {Event} event */
  async function submit(event) {
    event.preventDefault();
    message.textContent = "";
    try {
      const { name } = await send(body());
      saved(name);
    } catch (error) {
      message.textContent = errorText(error);
    }
  }
}
