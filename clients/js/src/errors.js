/**
 * A failure of the call or of one of its requests. `reason` is a stable word, `code` the number of
 * sfud's error where there is one, `message` is for people.
 */
export class CallError extends Error {
  constructor({ reason, message, code }) {
    super(message);
    this.name = "CallError";
    this.reason = reason;
    this.code = code ?? null;
  }

  /** The error itself, or one of the reason `failed` that has it as `cause`. */
  static of(error) {
    if (error instanceof CallError) return error;
    const failed = new CallError({ reason: "failed", message: error.message });
    return Object.assign(failed, { cause: error });
  }
}

/** Reasons of temporary refusals, and of lost answers: the call tries again by itself. */
export const PASSING = new Set([
  "not-connected", "sfud-not-running", "timeout", "node-unreachable", "registry-away",
  "outcome-unknown",
]);
