// One message over the page: a problem, what is awaited, or news.

const NEWS_MILLISECONDS = 6000;
const byID = (id) => document.getElementById(id);
let timer = null;
let last = null;

/** Shows `{message, waiting, isNews, action}`, or none; news go by themselves. */
export function report(problem) {
  clearTimeout(timer);
  if (problem?.isNews) timer = setTimeout(() => report(null), NEWS_MILLISECONDS);
  else if (problem) last = problem.message;
  byID("banner").hidden = !problem;
  if (!problem) return;
  byID("banner-text").textContent = problem.message;
  byID("banner").classList.toggle("is-waiting", Boolean(problem.waiting));
  byID("banner").classList.toggle("is-news", Boolean(problem.isNews));
  byID("banner-action").hidden = !problem.action;
  byID("banner-action").textContent = problem.action?.label ?? "";
  byID("banner-action").onclick = problem.action?.run ?? null;
}

export const tell = (message) => report({ message, isNews: true });

/** The last problem that was shown, here or beside the form. */
export const lastProblem = () => last;
export function remember(message) {
  if (message) last = message;
}

byID("banner-close").addEventListener("click", () => report(null));
