// Lists that have no event stream: they are asked for again and again while they are shown.

import { showReachable } from "./stream.js";

export const REFRESH_MS = 3000;

/** Loads a list now, and then again and again. Returns what ends that. @param {() => Promise<void>} refresh */
export async function keepFresh(refresh) {
  await refresh();
  const timer = setInterval(() => {
    if (!document.hidden) void refresh().then(() => showReachable(null), showReachable);
  }, REFRESH_MS);
  return () => clearInterval(timer);
}

/**
 * Makes the children of a list stand for these values, in their order. Elements that stay are not touched.
 * @template {{element: HTMLElement, update: (value: any) => void}} Item
 * @param {HTMLElement} list
 * @param {Map<string, Item>} items by the ids of their values
 * @param {any[]} values
 * @param {(value: any) => string} idOf
 * @param {(value: any) => Item} make
 */
export function syncItems(list, items, values, idOf, make) {
  const ids = new Set(values.map(idOf));
  for (const [id, item] of items) if (!ids.has(id)) {
    item.element.remove();
    items.delete(id);
  }
  values.forEach((value, index) => {
    const item = items.get(idOf(value)) ?? make(value);
    items.set(idOf(value), item);
    item.update(value);
    if (list.children[index] !== item.element) list.insertBefore(item.element, list.children[index] ?? null);
  });
}
