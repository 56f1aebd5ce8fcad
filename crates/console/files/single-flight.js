// Work that must not overlap with itself.

/**
 * Runs at most once at a time. A call while it runs makes it run once more afterwards, and its promise waits for that run.
 * @param {() => Promise<void>} work
 * @returns {() => Promise<void>}
 */
export function singleFlight(work) {
  /** @type {Promise<void> | null} */
  let current = null;
  /** @type {Promise<void> | null} */
  let next = null;
  const run = () => {
    current = work().finally(() => {
      current = null;
    });
    return current;
  };
  return () => {
    if (!current) return run();
    next ??= current.catch(() => {}).then(() => {
      next = null;
      return run();
    });
    return next;
  };
}
