// For the keyboard and screen readers: what scrolls can have the focus, the buttons at code are no landmarks, and the
// path of a page has another name than the navigation.
const improve = () => {
  for (const one of document.querySelectorAll(".md-typeset pre > code, .md-typeset__scrollwrap")) one.tabIndex = 0;
  for (const one of document.querySelectorAll(".md-code__nav")) one.setAttribute("role", "none");
  for (const one of document.querySelectorAll(".md-path")) one.setAttribute("aria-label", "Path");
};
new MutationObserver(improve).observe(document.body, { childList: true, subtree: true });
improve();

// A question is searched for by its words, not by every word that begins with one of them: "in" is no part of "init".
// Words that say nothing about the subject are left out. A single word may be incomplete.
const QUERY = 2; // the type of the message to the worker of the search
const send = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (message, ...rest) {
  if (message?.type === QUERY && typeof message.data === "string" && !/["+~^*]/.test(message.data)) {
    const every = message.data.toLowerCase().match(/[^\s?!,;()]+/g) ?? [];
    const words = every.filter((one) => !STOP.has(one));
    if (words.length && every.length > 1) message = { ...message, data: words.map((one) => `${one}^1`).join(" ") };
  }
  return send.call(this, message, ...rest);
};
