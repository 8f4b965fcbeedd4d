// What scrolls can be scrolled with the keyboard, the buttons at code are no landmarks, and two landmarks have two names.
const reachable = () => {
  for (const one of document.querySelectorAll(".md-typeset pre > code, .md-typeset__scrollwrap")) one.tabIndex = 0;
  for (const one of document.querySelectorAll(".md-code__nav")) one.setAttribute("role", "none");
  for (const one of document.querySelectorAll(".md-path")) one.setAttribute("aria-label", "Path");
};
new MutationObserver(reachable).observe(document.body, { childList: true, subtree: true });
reachable();
