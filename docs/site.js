// What scrolls can be scrolled with the keyboard, and the buttons at code are no landmarks.
const reachable = () => {
  for (const one of document.querySelectorAll(".md-typeset pre > code, .md-typeset__scrollwrap")) one.tabIndex = 0;
  for (const one of document.querySelectorAll(".md-code__nav")) one.setAttribute("role", "none");
};
new MutationObserver(reachable).observe(document.body, { childList: true, subtree: true });
reachable();
