// One message over the page: a problem, what is awaited, or news.

const NEWS_MILLISECONDS = 6000;
const byID = (id) => document.getElementById(id);
let timer = null;
let last = null;

/** Shows `{message, waiting, isNews, actions}`, or none; news go by themselves. */
export function report(problem) {
  clearTimeout(timer);
  if (problem?.isNews) timer = setTimeout(() => report(null), NEWS_MILLISECONDS);
  else if (problem) last = problem.message;
  byID("banner").hidden = !problem;
  if (!problem) return;
  byID("banner-text").textContent = problem.message;
  byID("banner").classList.toggle("is-waiting", Boolean(problem.waiting));
  byID("banner").classList.toggle("is-news", Boolean(problem.isNews));
  byID("banner-actions").replaceChildren(...(problem.actions ?? []).map(({ label, run }) => {
    const button = Object.assign(document.createElement("button"), { type: "button" });
    button.textContent = label;
    button.addEventListener("click", run);
    return button;
  }));
}

export const tell = (message) => report({ message, isNews: true });

/** The last problem that was shown, here or beside the form. */
export const lastProblem = () => last;
export function remember(message) {
  if (message) last = message;
}

byID("banner-close").addEventListener("click", () => report(null));
