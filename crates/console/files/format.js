// Numbers, times and names for people.

import { serverNow } from "./api.js";

const money = new Intl.NumberFormat(undefined, { style: "currency", currency: "USD", minimumFractionDigits: 2, maximumFractionDigits: 2 });
const smallMoney = new Intl.NumberFormat(undefined, { style: "currency", currency: "USD", minimumFractionDigits: 4, maximumFractionDigits: 4 });
const count = new Intl.NumberFormat();
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

const shortMoment = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });

/** @param {number | null | undefined} dollars */
export function formatCost(dollars) {
  if (dollars === null || dollars === undefined) return "unknown";
  return (dollars > 0 && dollars < 1 ? smallMoney : money).format(dollars);
}

/**
 * A text in which directional characters are seen instead of obeyed. They could make a command look like another one.
 * @param {string} text
 */
export function showDirections(text) {
  return text.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}

/**
 * A name without characters that nobody sees.
 * @param {string} name
 */
export function showControls(name) {
  return showDirections(name).replace(/\p{Cc}/gu, "\ufffd");
}

/** The address of a session. @param {string} key */
export function sessionHref(key) {
  return `#/session/${encodeURIComponent(key)}`;
}

/** @param {number} number */
export function formatCount(number) {
  return count.format(number);
}

/**
 * What a search that has not looked everywhere says after its count.
 * @param {number | undefined} records
 */
export function formatUnindexed(records) {
  return records ? `; the search index is being rebuilt, ${formatCount(records)} records are not searched yet` : "";
}

/** @param {number} tokens */
export function formatTokens(tokens) {
  if (tokens < 1000) return `${Math.round(tokens)}`;
  return tokens < 1e6 ? `${(tokens / 1000).toFixed(tokens < 1e4 ? 1 : 0)}k` : `${(tokens / 1e6).toFixed(1)}M`;
}

/** @param {string | number} at */
export function formatMoment(at) {
  return formatDate(moment, at);
}

/** For an axis, where there is little room. @param {string | number} at */
export function formatShortMoment(at) {
  return formatDate(shortMoment, at);
}

/** @param {string | number} at */
export function formatClock(at) {
  return formatDate(clock, at);
}

/** A time that is in no calendar is shown as it is. @param {Intl.DateTimeFormat} format @param {string | number} at */
function formatDate(format, at) {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? String(at) : format.format(date);
}

/** @param {number} milliseconds */
export function formatDuration(milliseconds) {
  const ms = Math.max(0, Math.round(milliseconds));
  if (ms < 1000) return `${ms} ms`;
  if (ms < 59950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/**
 * How long ago something was, by the server's clock.
 * @param {string | null | undefined} at
 */
export function formatAgo(at) {
  if (!at) return "";
  const minutes = Math.floor((serverNow() - new Date(at).getTime()) / 60000);
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${minutes} min ago`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ago`;
  return formatMoment(at);
}
